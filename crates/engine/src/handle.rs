//! The handle of one endpoint: its identity and settings, and the interfaces to its jobs and workers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longshore_model::{Endpoint, EndpointId, EndpointNo};

use crate::actor::request::Request;
use crate::balancer::Balancer;
use crate::endpoint_shared::EndpointShared;
use crate::supervisor::FleetEvent;
use crate::{EndpointMetrics, JobChanges, Jobs, Workers};

/// A handle of one endpoint that this server owns. A clone is another handle of the same endpoint, and costs one
/// reference count.
///
/// A handle outlives its endpoint. After the deletion, [`Jobs`] and [`Workers`] return
/// [`EndpointError::Deleted`](crate::EndpointError::Deleted), and [`EndpointHandle::record`] returns the last settings.
#[derive(Clone)]
pub struct EndpointHandle {
    interfaces: Arc<Interfaces>,
}

/// The interfaces of one endpoint. They exist once, so that a request borrows them and counts no reference.
struct Interfaces {
    jobs: Jobs,
    workers: Workers,
}

impl EndpointHandle {
    pub(crate) fn new(shared: Arc<EndpointShared>) -> Self {
        let interfaces = Interfaces { jobs: Jobs::new(Arc::clone(&shared)), workers: Workers::new(shared) };
        Self { interfaces: Arc::new(interfaces) }
    }

    /// The operations of clients on the endpoint's jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.interfaces.jobs
    }

    /// The operations of workers and of their supervisor.
    pub fn workers(&self) -> &Workers {
        &self.interfaces.workers
    }

    /// What forwards requests to the workers; `None` for an endpoint with a queue.
    pub fn balancer(&self) -> Option<&Arc<Balancer>> {
        self.shared().balancer.as_ref()
    }

    /// The endpoint's id, which never changes.
    pub fn id(&self) -> EndpointId {
        self.shared().id
    }

    /// The endpoint's number, which never changes and is never given to another endpoint. Rows have it as their key.
    pub fn no(&self) -> EndpointNo {
        self.shared().no
    }

    /// The endpoint's identity and settings at this moment. Later changes do not reach the returned value.
    pub fn record(&self) -> Arc<Endpoint> {
        self.shared().record()
    }

    /// The number of workers that hold a job at this moment. The rate limits of the endpoint grow with it.
    pub fn running_workers(&self) -> u32 {
        self.shared().running_workers.load(Ordering::Relaxed)
    }

    /// The measurements of the endpoint's jobs since the server started.
    pub fn metrics(&self) -> &EndpointMetrics {
        &self.shared().metrics
    }

    /// Returns the changes of jobs since the last call; `None` if nothing changed, and while
    /// [`Engine::watch_jobs`](crate::Engine::watch_jobs) is off. There is one caller: it shares what it takes.
    pub fn take_job_changes(&self) -> Option<JobChanges> {
        self.shared().job_feed.take()
    }

    /// Replaces the settings, and sends them to the endpoint's actor and supervisor.
    pub(crate) fn configure(&self, record: Endpoint) {
        let shared = self.shared();
        shared.set_record(Arc::new(record.clone()));
        // An actor that has ended needs no settings.
        let _ = shared.requests.send(Request::Configure(Box::new(record)));
        if let Some(balancer) = &shared.balancer {
            balancer.configure(&shared.record());
        }
        shared.notify_fleet(FleetEvent::Configured);
    }

    /// The state that the handle has in common with the endpoint's actor.
    pub(crate) fn shared(&self) -> &Arc<EndpointShared> {
        &self.interfaces.jobs.shared
    }
}
