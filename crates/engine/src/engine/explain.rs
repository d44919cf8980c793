//! Why a job waits: collects the facts that other parts published last. [`longshore_fleet::explain`] decides.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use longshore_fleet::{
    Explanation, FleetFacts, GpuHolder, GpuShortage, ManagedWorker, PauseFacts, ProviderFault, Requeue,
    Shortage, StoreFault, WaitFacts, WaitingQueue, explain,
};
use longshore_model::{
    Endpoint, EndpointId, JobId, JobRow, JobState, Millis, Provider, StartStage, WorkerId,
};
use tokio::time::timeout;

use super::Engine;
use crate::actor::query::{Query, Waiting};
use crate::gpu_pool::PoolShortage;
use crate::supervisor::environment::limits;
use crate::{EndpointError, EndpointHandle, FieldChange, FleetStatus, Refusal, WorkerStatus};

/// How long the queue may take to answer. It answers within a millisecond, unless its disk is slow.
const QUEUE_WAIT: Duration = Duration::from_secs(10);
/// How long the store may take to read the attempts of a job, which an explanation can do without.
const ATTEMPTS_WAIT: Duration = Duration::from_secs(2);
/// How long the queue may take while the store is failing: then the explanation does not need its answer.
const FAILING_QUEUE_WAIT: Duration = Duration::from_millis(200);

impl Engine {
    /// Returns why a job of this endpoint waits, or, without a job, why its jobs wait. `may_name` says which other endpoints
    /// the reader may see; no other name is in the texts.
    ///
    /// Reads what the supervisor, the store and the GPU pool published, and asks the queue once, which takes logarithmic
    /// time. While the store is failing, a queue that does not answer is left out.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an unknown or expired id.
    /// - [`EndpointError::Deleted`] if the endpoint is deleted.
    /// - [`EndpointError::Unavailable`] if the queue does not answer although the store works.
    pub async fn explain(
        &self,
        endpoint: &EndpointHandle,
        job: Option<JobId>,
        may_name: &(dyn Fn(&EndpointId) -> bool + Sync),
    ) -> Result<Explanation, EndpointError> {
        let queue = self.waiting(endpoint, job).await?;
        let (record, status, now) = (endpoint.record(), endpoint.workers().fleet_status(), self.now());
        let stage = self.stage(endpoint, &status).await;
        let facts = WaitFacts {
            now,
            server_started_at: self.inner.started_at,
            // Nothing of a forwarded request is stored.
            store_fault: self.present_store_fault().filter(|_| endpoint.balancer().is_none()),
            draining_since: self.draining_since(),
            provider_fault: self.provider_fault(record.provider),
            gpus: self.gpu_shortage(endpoint, now, &status.facts, may_name),
            no_room: status.facts.throttled_since.and_then(|_| self.inner.gpu_pool.no_room(&limits(&record))),
            finishes: endpoint.metrics().finishes.rate(now),
            runs: endpoint.metrics().runs.compared(),
            servers: endpoint.balancer().map(|balancer| balancer.servers()).unwrap_or_default(),
            fleet: FleetFacts::clone(&status.facts),
            pause: self.pause(&record, may_name(&record.id)),
            endpoint: &record,
            queue,
            stage,
        };
        Ok(explain(&facts))
    }

    /// Why no worker of this endpoint can ever start: what it asks for, and the GPUs that there are, as the text of the cause
    /// `gpu_impossible`. `None` if there are such GPUs, also while other workers have them.
    pub fn impossible_gpus(&self, endpoint: &EndpointHandle) -> Option<String> {
        let record = endpoint.record();
        self.inner.launchers.get(&record.provider)?;
        let PoolShortage { need, stock, why, .. } = self.inner.gpu_pool.shortage(self.now(), &record)?;
        (why == Shortage::Impossible).then(|| longshore_fleet::impossible_gpus(&need, &stock))
    }

    /// What the queue, or the balancer, knows; `None` if it does not answer because the store is failing.
    async fn waiting(
        &self,
        endpoint: &EndpointHandle,
        job: Option<JobId>,
    ) -> Result<Option<WaitingQueue>, EndpointError> {
        if let Some(balancer) = endpoint.balancer() {
            return match job {
                None => Ok(Some(balancer.waiting())),
                Some(_) => Err(EndpointError::Refused(Refusal::NoSuchJob)),
            };
        }
        let query = endpoint.shared().query(|reply| Query::Waiting { job, reply });
        let wait = if self.has_store_fault() { FAILING_QUEUE_WAIT } else { QUEUE_WAIT };
        let unavailable = match timeout(wait, query).await {
            Ok(Ok(waiting)) => {
                let Waiting { mut queue, row } = *waiting;
                if let Some((job, row)) = queue.job.as_mut().zip(row) {
                    job.requeue = last_requeue(endpoint, &row).await;
                }
                return Ok(Some(queue));
            }
            Ok(Err(error @ EndpointError::Unavailable(_))) => error,
            Ok(Err(error)) => return Err(error),
            Err(_) => EndpointError::Unavailable("the endpoint's queue does not answer".to_owned()),
        };
        if self.present_store_fault().is_some() { Ok(None) } else { Err(unavailable) }
    }

    /// Why this server cannot start workers of a provider, and since when; `None` if it can, and while it finds out.
    fn provider_fault(&self, provider: Provider) -> Option<ProviderFault> {
        if !self.providers().contains(&provider) {
            let reason = "it has no launcher for this provider".to_owned();
            return Some(ProviderFault { reason, since: self.inner.started_at });
        }
        self.not_adopted().get(&provider).cloned().flatten()
    }

    /// Whether the store is known to be failing, or to have no space left. Asks nothing.
    pub fn has_store_fault(&self) -> bool {
        self.inner.services.store_health.fault(self.now()).is_some()
            || self.inner.services.space.since().is_some()
    }

    /// The fault of the store. Finds out in the background whether the store can write again.
    fn present_store_fault(&self) -> Option<StoreFault> {
        let Some((error, since)) = self.inner.services.store_health.fault(self.now()) else {
            // The reason names folders, which not every reader may know.
            let since = self.inner.services.space.since()?;
            return Some(StoreFault { error: "Its disk is full".to_owned(), since });
        };
        let engine = self.clone();
        self.spawn(async move { drop(engine.store_fault().await) });
        // The database's address and the names of files are not for every reader, either.
        let names = ["cannot connect to the database", "store_password_file"];
        let is_hidden = names.iter().any(|name| error.contains(name));
        let error = if is_hidden { "The database does not answer".to_owned() } else { error };
        Some(StoreFault { error, since })
    }

    /// The change that set `workersMax` to 0, or the creation with it, as the endpoint's versions have it. The key of the change is
    /// told only if `may_read` the endpoint.
    fn pause(&self, record: &Endpoint, may_read: bool) -> Option<PauseFacts> {
        if record.workers_max > 0 {
            return None;
        }
        let versions = self.catalog().versions(record);
        let mut entries = versions.iter().flat_map(|version| version.entries.iter().rev());
        let is_pause = |field: &FieldChange| field.name == "workersMax" && field.to == 0;
        // Without a change, it was made with this value.
        let made =
            || versions.last().filter(|first| first.version == 1).and_then(|first| first.entries.first());
        let entry = entries.find(|entry| entry.fields.iter().any(is_pause)).or_else(made)?;
        let by = Some(&entry.by).filter(|by| may_read && !by.is_empty());
        Some(PauseFacts { at: entry.at, by: by.map(|by| self.keys().name_or_id(by)) })
    }

    /// What happens to the worker that has been starting for the longest time; `None` if none starts or its launcher cannot
    /// say.
    async fn stage(&self, endpoint: &EndpointHandle, status: &FleetStatus) -> Option<StartStage> {
        let (oldest, _) = starting(status).min_by_key(|(_, worker)| worker.started_at)?;
        self.stage_of(endpoint, oldest).await
    }

    /// What happens to each worker of an endpoint that is starting, as far as its launcher can say.
    pub async fn start_stages(
        &self,
        endpoint: &EndpointHandle,
        status: &FleetStatus,
    ) -> HashMap<WorkerId, StartStage> {
        let mut stages = HashMap::new();
        for (worker, _) in starting(status) {
            if let Some(stage) = self.stage_of(endpoint, worker).await {
                stages.insert(worker.id.clone(), stage);
            }
        }
        stages
    }

    async fn stage_of(&self, endpoint: &EndpointHandle, worker: &WorkerStatus) -> Option<StartStage> {
        if worker.stage.is_some() {
            return worker.stage;
        }
        let launcher = self.inner.launchers.get(&endpoint.record().provider)?;
        launcher.start_stage(&worker.id).await.ok().flatten()
    }

    /// Why a worker of the endpoint gets no GPUs. Only a worker that the supervisor wants to start is held back; GPUs that no
    /// machine has are a mistake in the settings, which is shown before.
    fn gpu_shortage(
        &self,
        endpoint: &EndpointHandle,
        now: Millis,
        fleet: &FleetFacts,
        may_name: &(dyn Fn(&EndpointId) -> bool + Sync),
    ) -> Option<GpuShortage> {
        let record = endpoint.record();
        self.inner.launchers.get(&record.provider)?;
        let PoolShortage { need, stock, owners, why } = self.inner.gpu_pool.shortage(now, &record)?;
        let name = |id: &EndpointId| {
            let other = self.endpoint(id.as_str()).filter(|_| *id == record.id || may_name(id));
            other.map(|other| other.record().name.clone())
        };
        match why {
            Shortage::Impossible => Some(GpuShortage::Impossible { need, stock }),
            _ if fleet.throttled_since.is_none() => None,
            Shortage::Sick(reason) => Some(GpuShortage::Sick { need, stock, reason }),
            Shortage::InUse { free, total, before, .. } => Some(GpuShortage::Busy {
                need,
                free: free as u32,
                total: total as u32,
                holders: self.gpu_holders(&owners, &name),
                before: before.iter().map(name).collect(),
            }),
            Shortage::Kept { keeper, keeper_needs, until } => Some(GpuShortage::Kept {
                need,
                keeper: name(&keeper),
                keeper_needs: keeper_needs as u32,
                until,
            }),
        }
    }

    /// The endpoints of these workers, with the number of their workers, and how many of these run a job.
    fn gpu_holders(
        &self,
        owners: &[(WorkerId, EndpointId)],
        name: &dyn Fn(&EndpointId) -> Option<String>,
    ) -> Vec<GpuHolder> {
        let mut holders: BTreeMap<EndpointId, GpuHolder> = BTreeMap::new();
        for (worker, owner) in owners {
            let holder = holders.entry(*owner).or_insert_with(|| GpuHolder {
                name: name(owner),
                workers: 0,
                busy: 0,
                idle_end_at: None,
            });
            holder.workers += 1;
            let Some(status) = self.endpoint(owner.as_str()).map(|owner| owner.workers().fleet_status())
            else {
                continue;
            };
            let Some(facts) = status.facts.worker(worker) else { continue };
            holder.busy += u32::from(facts.is_busy);
            holder.idle_end_at = holder.idle_end_at.into_iter().chain(facts.idle_end_at).min();
        }
        holders.into_values().collect()
    }
}

/// The workers that have not sent their first take and are to stay.
fn starting(status: &FleetStatus) -> impl Iterator<Item = (&WorkerStatus, &ManagedWorker)> {
    let workers = status.workers.iter().filter_map(|one| Some((one, status.facts.worker(&one.id)?)));
    workers.filter(|(_, facts)| !facts.is_ready && !facts.is_leaving)
}

/// When and why a job was put back into the queue; `None` if it was not, or its attempts cannot be read now.
async fn last_requeue(endpoint: &EndpointHandle, row: &JobRow) -> Option<Requeue> {
    if row.state != JobState::InQueue || row.never_taken {
        return None;
    }
    let attempts = endpoint.jobs().ended_attempts(row);
    let last = timeout(ATTEMPTS_WAIT, attempts).await.ok()?.ok()?.pop()?;
    (last.n == row.attempt).then(|| Requeue { at: last.ended_at, reason: last.reason.into() })
}
