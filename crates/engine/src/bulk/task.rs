//! A bulk task as it is stored.

use longshore_model::{EndpointId, JobId, JobRow, JobState, KeyId, Millis, WorkerId};
use longshore_queue::JobConditions;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{DeliveryState, JobSearch};

/// What a task does with each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BulkAction {
    /// Cancels queued and running jobs.
    Cancel,
    /// Queues failed and timed-out jobs again.
    Retry,
    /// Deletes ended jobs with their payloads.
    Delete,
}

impl BulkAction {
    /// The states of jobs that the action can change.
    pub fn states(self) -> &'static [JobState] {
        match self {
            Self::Cancel => &[JobState::InQueue, JobState::InProgress],
            Self::Retry => &[JobState::Failed, JobState::TimedOut],
            Self::Delete => &[JobState::Completed, JobState::Failed, JobState::Cancelled, JobState::TimedOut],
        }
    }

    /// The name of the action in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }
}

/// Whether a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BulkState {
    /// The task runs, or goes on at the next start of the server.
    Running,
    /// Every job was tried.
    Completed,
    /// A client stopped the task.
    Stopped,
}

impl BulkState {
    /// The name of the state in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Stopped => "stopped",
        }
    }
}

/// The jobs of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkSelection {
    /// The jobs that meet the conditions, and have what is searched for in their payloads.
    Matching(Box<JobConditions>, Option<JobSearch>),
    /// The jobs with these ids.
    Listed(Vec<JobId>),
}

/// Conditions as a task stores them; those of [`JobConditions`] and [`JobSearch`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BulkFilter {
    #[serde(deserialize_with = "states")]
    states: Vec<JobState>,
    since: Option<Millis>,
    until: Option<Millis>,
    worker: Option<WorkerId>,
    key: Option<KeyId>,
    id_part: Option<String>,
    delay_ms_min: Option<u64>,
    execution_ms_min: Option<u64>,
    is_retried: bool,
    started_since: Option<Millis>,
    started_until: Option<Millis>,
    is_ascending: bool,
    text: Option<String>,
    error: Option<String>,
    webhook: Option<DeliveryState>,
    members: Vec<(String, String)>,
}

/// A bulk task, with what it has done so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkTask {
    /// The id, in the form of a job's id.
    pub id: String,
    /// The endpoint of the jobs.
    pub endpoint: EndpointId,
    /// What is done with each job.
    #[serde(rename = "do")]
    pub action: BulkAction,
    /// Whether the task runs.
    pub state: BulkState,
    /// The number of jobs that matched when the task was created, as far as they were counted.
    pub matches: u64,
    /// The number of jobs that were changed.
    pub done: u64,
    /// The number of jobs that could not be changed.
    pub failed: u64,
    /// When the task was created. Jobs that were submitted or ended later are left out.
    pub created_at: Millis,
    /// When the task ended; `None` while it runs.
    pub ended_at: Option<Millis>,
    /// The id of the key that created the task.
    pub by: String,
    /// The conditions; `None` for a task with a list of jobs.
    pub(super) filter: Option<BulkFilter>,
    /// The jobs of a list that are left.
    #[serde(default)]
    pub(super) ids: Vec<String>,
    /// Jobs with lower ids are left, for a task with conditions.
    pub(super) before: Option<String>,
    /// The jobs whose verbs may have been sent.
    #[serde(default)]
    pub(super) batch: Vec<String>,
}

impl BulkFilter {
    fn of(conditions: JobConditions, search: Option<JobSearch>) -> Self {
        let JobSearch { text, error, webhook, members } = search.unwrap_or_default();
        let JobConditions {
            states,
            since,
            until,
            worker,
            key,
            id_part,
            delay_ms_min,
            execution_ms_min,
            is_retried,
            started_since,
            started_until,
            is_ascending,
        } = conditions;
        Self {
            states,
            since,
            until,
            worker,
            key,
            id_part,
            delay_ms_min,
            execution_ms_min,
            is_retried,
            started_since,
            started_until,
            is_ascending,
            text,
            error,
            webhook,
            members,
        }
    }

    /// The conditions on rows.
    pub(super) fn conditions(&self) -> JobConditions {
        let filter = self.clone();
        JobConditions {
            states: filter.states,
            since: filter.since,
            until: filter.until,
            worker: filter.worker,
            key: filter.key,
            id_part: filter.id_part,
            delay_ms_min: filter.delay_ms_min,
            execution_ms_min: filter.execution_ms_min,
            is_retried: filter.is_retried,
            started_since: filter.started_since,
            started_until: filter.started_until,
            is_ascending: filter.is_ascending,
        }
    }

    /// What jobs must have in their payloads; `None` for nothing.
    pub(super) fn search(&self) -> Option<JobSearch> {
        let search = JobSearch {
            text: self.text.clone(),
            error: self.error.clone(),
            webhook: self.webhook,
            members: self.members.clone(),
        };
        (search != JobSearch::default()).then_some(search)
    }
}

impl BulkTask {
    /// A new task. Its id is that of no job, and higher than those of the jobs that it may change.
    pub(super) fn new(
        id: JobId,
        endpoint: EndpointId,
        action: BulkAction,
        selection: BulkSelection,
        matches: u64,
        by: &str,
        now: Millis,
    ) -> Self {
        let (filter, ids) = match selection {
            BulkSelection::Matching(conditions, text) => {
                (Some(BulkFilter::of(*conditions, text)), Vec::new())
            }
            BulkSelection::Listed(ids) => (None, ids.iter().map(JobId::to_string).collect()),
        };
        Self {
            id: id.to_string(),
            endpoint,
            action,
            state: BulkState::Running,
            matches,
            done: 0,
            failed: 0,
            created_at: now,
            ended_at: None,
            by: by.to_owned(),
            before: filter.is_some().then(|| id.to_string()),
            filter,
            ids,
            batch: Vec::new(),
        }
    }

    /// Whether the task may change a job in this state: it ended before the task began, or has not ended.
    pub(super) fn applies_to(&self, row: &JobRow) -> bool {
        self.action.states().contains(&row.state)
            && (!row.state.is_terminal() || row.finished_at <= self.created_at)
    }

    /// The same task with the numbers of another state of it.
    pub(super) fn counted_as(&self, other: &Self) -> Self {
        let (matches, done, failed) = (other.matches, other.done, other.failed);
        Self { matches, done, failed, ..self.clone() }
    }

    /// Counts the results of a batch, which is then over.
    pub(super) fn count(&mut self, done: u64, failed: u64) {
        self.done += done;
        self.failed += failed;
        self.matches = self.matches.max(self.done + self.failed);
        self.batch.clear();
    }
}

fn states<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JobState>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let states: Option<Vec<_>> = names.iter().map(|name| JobState::parse(name)).collect();
    states.ok_or_else(|| serde::de::Error::custom("an unknown state of a job"))
}
