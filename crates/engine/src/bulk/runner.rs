//! Runs bulk tasks: one batch of jobs after the other, each in a few commits of the endpoint.

use std::sync::Arc;
use std::time::Duration;

use longshore_model::{JobId, JobRow, JobState};
use longshore_queue::Refusal;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{BulkAction, BulkSelection, BulkState, BulkTask};
use crate::actor::query::View;
use crate::actor::request::Request;
use crate::{CatalogError, EndpointError, EndpointHandle, Engine, JobFilter, Jobs};

/// The number of jobs in a batch, whose verbs are sent together.
const BATCH: usize = 100;
/// The number of rows that one query counts.
const COUNTED: usize = 1_000;
/// How long a task counts the jobs that match, before it begins.
const COUNT_FOR: Duration = Duration::from_secs(2);
/// The pause before a batch is tried again that the endpoint could not store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How soon a job is deleted, in ms. The queue deletes it when that is over.
const DELETE_MS: u64 = 1;

/// What became of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
}

/// Why a task does not go on.
enum Halt {
    /// It has ended, or was stopped.
    Over,
    /// The endpoint is deleted.
    Gone,
    /// The store or the queue failed; another try may succeed.
    Later,
}

impl From<CatalogError> for Halt {
    fn from(_: CatalogError) -> Self {
        Self::Later
    }
}

impl From<EndpointError> for Halt {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Deleted => Self::Gone,
            _ => Self::Later,
        }
    }
}

impl Engine {
    /// Runs a task to its end, in a task of its own.
    pub(super) fn run_bulk(&self, id: String) {
        let engine = self.clone();
        self.spawn(async move { engine.bulk_to_the_end(&id).await });
    }

    async fn bulk_to_the_end(&self, id: &str) {
        let stored = self.bulk().list().into_iter().find(|task| task.id == id);
        let Some(mut task) = stored.map(|task| BulkTask::clone(&task)) else { return };
        // The jobs of a stored batch may have been changed before.
        let mut is_repeated = true;
        while !self.is_stopping() {
            let Some(endpoint) = self.endpoint(task.endpoint.as_str()) else {
                self.bulk().forget(id).await;
                return;
            };
            match self.bulk_batch(&endpoint, &mut task, is_repeated).await {
                Ok(()) => is_repeated = false,
                Err(Halt::Over) => return,
                Err(Halt::Gone) => {
                    self.bulk().forget(id).await;
                    return;
                }
                Err(Halt::Later) => {
                    is_repeated = true;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Stores the next batch, and changes its jobs.
    async fn bulk_batch(
        &self,
        endpoint: &EndpointHandle,
        task: &mut BulkTask,
        is_repeated: bool,
    ) -> Result<(), Halt> {
        let is_repeated = is_repeated && !task.batch.is_empty();
        if task.batch.is_empty() {
            let before = task.clone();
            next_batch(endpoint.jobs(), task).await?;
            if task.batch.is_empty() {
                (task.state, task.ended_at) = (BulkState::Completed, Some(self.now()));
                let saved = self.bulk().save(task).await;
                if saved.is_err() {
                    (task.state, task.ended_at) = (BulkState::Running, None);
                }
                return saved.map_or(Err(Halt::Later), |_| Err(Halt::Over));
            }
            match self.bulk().save(task).await {
                Ok(true) => {}
                Ok(false) => return Err(Halt::Over),
                Err(error) => {
                    // No verb is sent for jobs that are not in the row.
                    *task = before;
                    return Err(error.into());
                }
            }
        }
        let batch: Vec<JobId> = task.batch.iter().filter_map(|id| id.parse().ok()).collect();
        let unreadable = (task.batch.len() - batch.len()) as u64;
        let (done, failed) = change_all(endpoint.jobs(), task, batch, is_repeated).await?;
        task.count(done, failed + unreadable);
        self.bulk().show(task);
        Ok(())
    }
}

impl Jobs {
    /// Counts the jobs of a selection that an action can change, for 2 s at most. Also returns whether all were counted.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn count_selected(
        &self,
        action: BulkAction,
        selection: &BulkSelection,
    ) -> Result<(u64, bool), EndpointError> {
        let began = Instant::now();
        match selection {
            BulkSelection::Listed(ids) => {
                let mut matches = 0;
                for id in ids {
                    let row = self.find(*id).await?;
                    matches += u64::from(row.is_some_and(|row| action.states().contains(&row.state)));
                }
                Ok((matches, true))
            }
            BulkSelection::Matching(conditions, search) => {
                let (mut matches, mut before) = (0, None);
                loop {
                    let filter = JobFilter { conditions: (**conditions).clone(), limit: COUNTED, before };
                    let (found, cursor) = if let Some(search) = search {
                        let page = self.search(filter, search).await?;
                        (page.jobs.len(), page.cursor)
                    } else {
                        let page = self.rows(filter).await?;
                        (page.jobs.len(), page.cursor)
                    };
                    matches += found as u64;
                    before = cursor;
                    if before.is_none() || began.elapsed() > COUNT_FOR {
                        return Ok((matches, before.is_none()));
                    }
                }
            }
        }
    }

    /// The row of a job as clients see it; `None` for an unknown or expired id.
    async fn find(&self, job: JobId) -> Result<Option<JobRow>, EndpointError> {
        match self.row(job, View::Visible).await {
            Ok(row) => Ok(Some(row)),
            Err(EndpointError::Refused(Refusal::NoSuchJob)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Puts the next jobs into the batch of the task, and moves on behind them. An empty batch is the end.
async fn next_batch(jobs: &Jobs, task: &mut BulkTask) -> Result<(), EndpointError> {
    let Some(filter) = task.filter.clone() else {
        let count = task.ids.len().min(BATCH);
        task.batch = task.ids.drain(..count).collect();
        return Ok(());
    };
    while let Some(before) = task.before.take() {
        let page = JobFilter { conditions: filter.conditions(), limit: BATCH, before: before.parse().ok() };
        let read = match filter.search() {
            Some(search) => jobs.search(page, &search).await.map(|page| {
                let rows: Vec<_> = page.jobs.into_iter().map(|job| job.row).collect();
                (rows, page.cursor, page.unread)
            }),
            None => jobs.rows(page).await.map(|page| (page.jobs, page.cursor, 0)),
        };
        let (rows, cursor, unread) = read.inspect_err(|_| task.before = Some(before))?;
        task.before = cursor.map(|cursor| cursor.to_string());
        task.failed += unread;
        task.matches = task.matches.max(task.done + task.failed);
        let fitting = rows.iter().filter(|row| task.applies_to(row));
        task.batch = fitting.map(|row| row.id.to_string()).collect();
        if !task.batch.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

/// Changes the jobs of a batch concurrently, so that they share commits. Returns how many were changed, and how many could
/// not be. After an error, some may have been changed.
async fn change_all(
    jobs: &Jobs,
    task: &BulkTask,
    batch: Vec<JobId>,
    is_repeated: bool,
) -> Result<(u64, u64), EndpointError> {
    let (mut done, mut failed) = (0, 0);
    let (mut changes, task) = (JoinSet::new(), Arc::new(task.clone()));
    for job in batch {
        let (jobs, task) = (jobs.clone(), Arc::clone(&task));
        changes.spawn(async move { change(&jobs, &task, job, is_repeated).await });
    }
    let mut error = None;
    while let Some(changed) = changes.join_next().await {
        match changed {
            Ok(Ok(Outcome::Done)) => done += 1,
            Ok(Ok(Outcome::Failed)) | Err(_) => failed += 1,
            Ok(Err(later)) => error = Some(later),
        }
    }
    error.map_or(Ok((done, failed)), Err)
}

/// Changes one job. In a repeated batch, a job to which the task no longer applies was changed before.
async fn change(
    jobs: &Jobs,
    task: &BulkTask,
    job: JobId,
    is_repeated: bool,
) -> Result<Outcome, EndpointError> {
    let applies = jobs.find(job).await?.is_some_and(|row| task.applies_to(&row));
    if !applies {
        return Ok(if is_repeated { Outcome::Done } else { Outcome::Failed });
    }
    let changed = match task.action {
        BulkAction::Cancel => jobs.cancel(job).await.map(|row| row.state == JobState::Cancelled),
        BulkAction::Retry => jobs.retry(job).await.map(|_| true),
        BulkAction::Delete => {
            let request = |reply| Request::SetTtl { job, ttl_ms: DELETE_MS, only_ended: true, reply };
            jobs.shared.request(request).await.map(|_| true)
        }
    };
    match changed {
        Ok(true) => Ok(Outcome::Done),
        // It ended by itself, or was changed by another client, since it was looked up.
        Ok(false) | Err(EndpointError::Refused(_)) => Ok(Outcome::Failed),
        Err(error) => Err(error),
    }
}
