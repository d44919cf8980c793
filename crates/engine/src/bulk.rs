//! Bulk tasks: cancelling, retrying or deleting all jobs of an endpoint that match a filter, or that are listed.
//!
//! ```text
//!   create ──► row ──► runner: the next jobs ──► row with these jobs ──► a verb for each ──► … ──► row with the end
//! ```
//!
//! The jobs of a batch are in the row before their verbs are sent. After a killed server, those of them that no longer match
//! were done before, and no job is changed twice.

mod runner;
mod task;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_model::{EndpointId, JobId, JsonRowKind, Millis};
use longshore_store::Write;

use crate::catalog::json_rows::{StoredJson, decoded};
use crate::catalog::shard::CatalogShard;
use crate::{CatalogError, Engine};

pub use task::{BulkAction, BulkSelection, BulkState, BulkTask};

/// The largest number of jobs in the list of a task.
pub const BULK_IDS_MAX: usize = 1_000;
/// Tasks of one endpoint that run at a time, and tasks of all endpoints.
const RUNNING_OF_ENDPOINT_MAX: usize = 4;
const RUNNING_MAX: usize = 32;
/// Tasks of one endpoint that are kept after their end, and how long, in ms: a day.
const ENDED_OF_ENDPOINT_MAX: usize = 20;
const ENDED_KEPT_MS: u64 = 86_400_000;

/// The bulk tasks of all endpoints: those that run, and those that ended within a day, of each endpoint the last 20.
pub struct BulkTasks {
    shard: CatalogShard,
    tasks: Mutex<BTreeMap<String, Arc<BulkTask>>>,
    /// Counts the changes of tasks.
    changes: AtomicU64,
    /// Held by each change from its checks until it is in `tasks`.
    lock: tokio::sync::Mutex<()>,
}

impl BulkTasks {
    /// The stored tasks. A corrupt row is logged and left out.
    pub(crate) fn new(shard: CatalogShard, rows: &[StoredJson]) -> Self {
        let tasks = rows.iter().filter_map(|row| decoded::<BulkTask>(JsonRowKind::BulkTask, row));
        let tasks = tasks.map(|task| (task.id.clone(), Arc::new(task))).collect();
        Self {
            shard,
            tasks: Mutex::new(tasks),
            changes: AtomicU64::new(0),
            lock: tokio::sync::Mutex::new(()),
        }
    }

    /// Every task, oldest first.
    pub fn list(&self) -> Vec<Arc<BulkTask>> {
        self.tasks().values().cloned().collect()
    }

    /// The task of this endpoint with this id.
    pub fn get(&self, endpoint: &EndpointId, id: &str) -> Option<Arc<BulkTask>> {
        self.tasks().get(id).filter(|task| task.endpoint == *endpoint).cloned()
    }

    /// The number of changes of tasks since the start of the server.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Stores a new task; `None` if too many run. Removes tasks that ended long ago.
    async fn create(&self, task: BulkTask, now: Millis) -> Result<Option<Arc<BulkTask>>, CatalogError> {
        let _lock = self.lock.lock().await;
        let running: Vec<_> = self
            .list()
            .into_iter()
            .filter(|one| one.state == BulkState::Running)
            .map(|one| one.endpoint)
            .collect();
        let own = running.iter().filter(|endpoint| **endpoint == task.endpoint).count();
        if own >= RUNNING_OF_ENDPOINT_MAX || running.len() >= RUNNING_MAX {
            return Ok(None);
        }
        let surplus = self.surplus(&task.endpoint, now);
        let mut writes: Vec<_> =
            surplus.iter().map(|id| Write::DeleteJsonRow(JsonRowKind::BulkTask, id.clone())).collect();
        writes.push(put(&task)?);
        self.shard.commit(writes).await?;
        let task = Arc::new(task);
        let mut tasks = self.tasks();
        for id in &surplus {
            tasks.remove(id);
        }
        tasks.insert(task.id.clone(), Arc::clone(&task));
        drop(tasks);
        self.changed();
        Ok(Some(task))
    }

    /// The ended tasks that are too old, and those of the endpoint that are too many.
    fn surplus(&self, endpoint: &EndpointId, now: Millis) -> Vec<String> {
        let tasks = self.tasks();
        let ended = || tasks.values().filter_map(|task| Some((task.ended_at?, task)));
        let old = ended().filter(|(at, _)| now.since(*at) > ENDED_KEPT_MS).map(|(_, task)| task.id.clone());
        let own = ended().filter(|(at, task)| task.endpoint == *endpoint && now.since(*at) <= ENDED_KEPT_MS);
        let mut own: Vec<_> = own.map(|(at, task)| (at, task.id.clone())).collect();
        own.sort_unstable();
        let many = own.len().saturating_sub(ENDED_OF_ENDPOINT_MAX - 1);
        old.chain(own.into_iter().take(many).map(|(_, id)| id)).collect()
    }

    /// Stores a task as its runner left it; `false` if it was stopped or removed meanwhile. Of a stopped task, the numbers are
    /// stored: its last batch ended after the stop.
    async fn save(&self, task: &BulkTask) -> Result<bool, CatalogError> {
        let _lock = self.lock.lock().await;
        let Some(present) = self.get(&task.endpoint, &task.id) else { return Ok(false) };
        let is_running = present.state == BulkState::Running;
        let kept = if is_running { task.clone() } else { present.counted_as(task) };
        if kept != *present {
            self.shard.commit(vec![put(&kept)?]).await?;
            self.tasks().insert(task.id.clone(), Arc::new(kept));
            self.changed();
        }
        Ok(is_running)
    }

    /// Shows how far a task is, until it is saved.
    fn show(&self, task: &BulkTask) {
        let mut tasks = self.tasks();
        if let Some(shown) = tasks.get_mut(&task.id).filter(|shown| shown.state == BulkState::Running) {
            *shown = Arc::new(task.clone());
            drop(tasks);
            self.changed();
        }
    }

    /// Stops a task that runs, or removes one that has ended. Returns the task; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the change could not be made durable. Nothing has changed then.
    pub async fn stop_or_remove(
        &self,
        endpoint: &EndpointId,
        id: &str,
        now: Millis,
    ) -> Result<Option<Arc<BulkTask>>, CatalogError> {
        let _lock = self.lock.lock().await;
        let Some(task) = self.get(endpoint, id) else { return Ok(None) };
        if task.state != BulkState::Running {
            self.shard.commit(vec![Write::DeleteJsonRow(JsonRowKind::BulkTask, id.to_owned())]).await?;
            self.tasks().remove(id);
            self.changed();
            return Ok(Some(task));
        }
        let stopped = BulkTask { state: BulkState::Stopped, ended_at: Some(now), ..BulkTask::clone(&task) };
        self.shard.commit(vec![put(&stopped)?]).await?;
        let stopped = Arc::new(stopped);
        self.tasks().insert(id.to_owned(), Arc::clone(&stopped));
        self.changed();
        Ok(Some(stopped))
    }

    /// Removes the tasks of an endpoint that is gone.
    async fn forget(&self, id: &str) {
        let _lock = self.lock.lock().await;
        // A row that is left is removed at the next start.
        let _ = self.shard.commit(vec![Write::DeleteJsonRow(JsonRowKind::BulkTask, id.to_owned())]).await;
        self.tasks().remove(id);
        self.changed();
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, Arc<BulkTask>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The moment of a request for a bulk task: jobs that are submitted or end after it are left out.
#[derive(Clone, Copy, Debug)]
pub struct BulkMoment {
    id: JobId,
    at: Millis,
}

impl Engine {
    /// The present moment: all jobs that were submitted or have ended are from before it.
    pub fn bulk_moment(&self) -> BulkMoment {
        BulkMoment { id: self.mint_job(false), at: self.now() }
    }

    /// Starts a bulk task on an endpoint, for the key with the id `by`. `matches` is the number of jobs that match, as far as
    /// they were counted. `None` if too many tasks run.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the task could not be made durable. Then nothing has changed.
    pub async fn start_bulk(
        &self,
        endpoint: EndpointId,
        action: BulkAction,
        selection: BulkSelection,
        matches: u64,
        by: &str,
        BulkMoment { id, at }: BulkMoment,
    ) -> Result<Option<Arc<BulkTask>>, CatalogError> {
        let task = BulkTask::new(id, endpoint, action, selection, matches, by, at);
        let created = self.bulk().create(task, self.now()).await?;
        if let Some(task) = &created {
            self.run_bulk(task.id.clone());
        }
        Ok(created)
    }

    /// Continues the tasks that an earlier server did not end.
    pub(crate) fn resume_bulk(&self) {
        for task in self.bulk().list() {
            if task.state == BulkState::Running {
                self.run_bulk(task.id.clone());
            }
        }
    }
}

fn put(task: &BulkTask) -> Result<Write, CatalogError> {
    let json = serde_json::to_vec(task).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
    Ok(Write::PutJsonRow(JsonRowKind::BulkTask, task.id.clone(), json.into()))
}
