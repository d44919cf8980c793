//! How long workers ran, for whoever pays for them: counted by the hour, written down about once a minute.
//!
//! A worker is counted from its start to its end, by the notes that its launcher keeps with it. So a server that was
//! killed forgets nothing: the next one goes on where the notes end, and what it cannot know is how long a worker ran
//! whose launcher lost it.

mod job_use;
mod ledger;

use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_launch::WorkerExit;
use longshore_model::{EndpointId, JsonRowKind, Millis, Placement, Template};
use longshore_store::Write;

use crate::{CatalogError, EndpointHandle, Engine, StoredJson};
use ledger::Ledger;

pub use job_use::JobUsage;
pub use ledger::{Usage, UsageKind, UsageSheet};

/// Counts worker time.
#[derive(Debug)]
pub(crate) struct Meter {
    ledger: Mutex<Ledger>,
    /// Held while a sheet is on its way to the store, so that no older one arrives after it.
    writing: tokio::sync::Mutex<()>,
}

impl Meter {
    pub(crate) fn new(records: impl IntoIterator<Item = StoredJson>) -> Self {
        Self { ledger: Mutex::new(Ledger::load(records)), writing: tokio::sync::Mutex::default() }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Worker time from `from` to `to` and up to this moment, by the hour or, where it is older, by the day.
    pub fn usage(&self, from: Millis, to: Millis) -> Vec<UsageSheet> {
        self.meter_workers();
        self.meter().ledger().between(from, to)
    }

    /// Writes down how long workers ran until now, all in one commit; nothing if none did.
    pub async fn note_usage(&self) -> Result<(), CatalogError> {
        let _writing = self.meter().writing.lock().await;
        self.meter_workers();
        let (records, unwanted) = {
            let mut ledger = self.meter().ledger();
            ledger.fold(self.now());
            ledger.take_unwritten()
        };
        let puts =
            records.iter().map(|r| Write::PutJsonRow(JsonRowKind::Usage, r.id.clone(), r.json.clone()));
        let deletes = unwanted.iter().map(|id| Write::DeleteJsonRow(JsonRowKind::Usage, id.clone()));
        let writes: Vec<Write> = puts.chain(deletes).collect();
        if writes.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.commit(writes).await {
            self.meter().ledger().give_back(records, unwanted);
            return Err(error.into());
        }
        Ok(())
    }

    /// Counts the workers that run.
    fn meter_workers(&self) {
        let now = self.now();
        for handle in self.endpoints() {
            self.meter_jobs(&handle);
            let status = handle.fleet_status();
            if status.workers.is_empty() {
                continue;
            }
            let record = handle.record();
            let template = self.template(&record.template_id);
            let mut ledger = self.meter().ledger();
            for worker in status.workers.iter() {
                let kind = || kind(template.as_deref(), &worker.placement);
                // Of a worker that an older program started nobody knows since when it runs.
                let since = Some(worker.placement.started_at).filter(|at| at.0 > 0).unwrap_or(now);
                ledger.meter(record.id, &worker.id, kind, since, now);
            }
        }
    }

    /// Counts the jobs of an endpoint that ended, in the hour in which that is noted.
    pub(crate) fn meter_jobs(&self, handle: &EndpointHandle) {
        let used = handle.shared.take_job_use();
        if !used.is_empty() {
            self.meter().ledger().meter_jobs(handle.id(), used, self.now());
        }
    }

    /// Counts a worker that ended.
    pub(crate) fn meter_end(&self, exited: &WorkerExit) {
        let WorkerExit { endpoint, worker, placement, ran_ms, .. } = exited;
        if placement.started_at.0 == 0 {
            return;
        }
        // It may have ended long ago, when no server was there.
        let end = self.now().min(placement.started_at + *ran_ms);
        let kind = || kind(self.template_of(endpoint).as_deref(), placement);
        self.meter().ledger().meter(*endpoint, worker, kind, placement.started_at, end);
    }

    fn template_of(&self, endpoint: &EndpointId) -> Option<std::sync::Arc<Template>> {
        self.template(&self.endpoint(endpoint.as_str())?.record().template_id)
    }
}

fn kind(template: Option<&Template>, placement: &Placement) -> UsageKind {
    UsageKind {
        template_id: template.map_or_else(String::new, |template| template.id.to_string()),
        image_name: template.map_or_else(String::new, |template| template.image_name.clone()),
        gpu_type_id: placement.gpus.first().map_or_else(String::new, |gpu| gpu.type_id.clone()),
        gpu_count: placement.gpus.len(),
    }
}
