//! Meters worker time and job execution time for billing: counted by the hour, written about once a minute.
//!
//! A worker is metered from its start to its exit, by the start time that its launcher stores with it. A server that
//! was killed therefore loses no worker time: the next one meters from the last written moment on. Only the time of a
//! worker that the launcher lost meanwhile stays unknown. The counts of jobs that ended since the last write are lost.

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

/// The meter of all endpoints.
#[derive(Debug)]
pub(crate) struct Meter {
    ledger: Mutex<Ledger>,
    /// Held during a commit of sheets, so that no older sheet is written after a newer one.
    writing: tokio::sync::Mutex<()>,
}

impl Meter {
    /// Loads the stored sheets.
    pub(crate) fn new(rows: impl IntoIterator<Item = StoredJson>) -> Self {
        Self { ledger: Mutex::new(Ledger::load(rows)), writing: tokio::sync::Mutex::default() }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Returns the sheets that overlap the time from `from` to `to`, metered up to now. One sheet per endpoint and
    /// hour; per day for times over 35 days ago. The oldest first.
    pub fn usage(&self, from: Millis, to: Millis) -> Vec<UsageSheet> {
        self.meter_workers();
        self.meter().ledger().between(from, to)
    }

    /// Meters up to now and writes the changed sheets in one commit; without a change nothing is written.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the commit failed; the sheets are written with the next call.
    pub async fn note_usage(&self) -> Result<(), CatalogError> {
        let _writing = self.meter().writing.lock().await;
        self.meter_workers();
        let (rows, unwanted) = {
            let mut ledger = self.meter().ledger();
            ledger.fold(self.now());
            ledger.take_unwritten()
        };
        let puts =
            rows.iter().map(|row| Write::PutJsonRow(JsonRowKind::Usage, row.id.clone(), row.json.clone()));
        let deletes = unwanted.iter().map(|id| Write::DeleteJsonRow(JsonRowKind::Usage, id.clone()));
        let writes: Vec<Write> = puts.chain(deletes).collect();
        if writes.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.catalog().commit(writes).await {
            self.meter().ledger().restore_unwritten(rows, unwanted);
            return Err(error.into());
        }
        Ok(())
    }

    /// Meters the running workers of all endpoints, and the jobs that ended, up to now.
    fn meter_workers(&self) {
        let now = self.now();
        for handle in self.endpoints() {
            self.meter_jobs(&handle);
            let status = handle.workers().fleet_status();
            if status.workers.is_empty() {
                continue;
            }
            let endpoint = handle.record();
            let template = self.catalog().template(&endpoint.template_id);
            let mut ledger = self.meter().ledger();
            for worker in status.workers.iter() {
                let kind = || kind(template.as_deref(), &worker.placement);
                // The start time of a worker that an older version started is unknown (0).
                let since = Some(worker.placement.started_at).filter(|at| at.0 > 0).unwrap_or(now);
                ledger.meter(endpoint.id, &worker.id, kind, since, now);
            }
        }
    }

    /// Meters the jobs of an endpoint that ended since the last call, in the present hour.
    pub(crate) fn meter_jobs(&self, handle: &EndpointHandle) {
        let used = handle.shared().take_job_use();
        if !used.is_empty() {
            self.meter().ledger().meter_jobs(handle.id(), used, self.now());
        }
    }

    /// Meters a worker that exited.
    pub(crate) fn meter_end(&self, exited: &WorkerExit) {
        let WorkerExit { endpoint, worker, placement, ran_ms, .. } = exited;
        if placement.started_at.0 == 0 {
            return;
        }
        // The worker may have exited long ago, while no server ran.
        let end = self.now().min(placement.started_at + *ran_ms);
        let kind = || kind(self.template_of(endpoint).as_deref(), placement);
        self.meter().ledger().meter(*endpoint, worker, kind, placement.started_at, end);
    }

    fn template_of(&self, endpoint: &EndpointId) -> Option<std::sync::Arc<Template>> {
        self.catalog().template(&self.endpoint(endpoint.as_str())?.record().template_id)
    }
}

/// Returns the kind of a worker of this template and placement; empty texts without a template.
fn kind(template: Option<&Template>, placement: &Placement) -> UsageKind {
    UsageKind {
        template_id: template.map_or_else(String::new, |template| template.id.to_string()),
        image_name: template.map_or_else(String::new, |template| template.image_name.clone()),
        gpu_type_id: placement.gpus.first().map_or_else(String::new, |gpu| gpu.type_id.clone()),
        gpu_count: placement.gpus.len(),
    }
}
