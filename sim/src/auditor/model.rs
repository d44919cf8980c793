//! All known endpoints, jobs and workers by name.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use super::endpoint::Endpoint;
use super::job::{EndpointNo, Job, JobNo, WorkerNo};
use super::rules::Rules;
use super::time_bounds::EventTime;
use super::worker::WorkerModel;

/// A map with the same order in every run.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// All known endpoints, jobs and workers by name.
#[derive(Debug, Default)]
pub(super) struct Model {
    jobs: Vec<Option<Box<Job>>>,
    job_names: Map<Box<str>, JobNo>,
    pub endpoints: Vec<Endpoint>,
    endpoint_names: Map<Box<str>, EndpointNo>,
    pub workers: Vec<WorkerModel>,
    worker_names: Map<Box<str>, WorkerNo>,
}

impl Model {
    /// Returns the endpoint of an id or slug.
    pub fn endpoint(&mut self, name: &str, rules: &Rules) -> EndpointNo {
        if let Some(known) = self.endpoint_names.get(name) {
            return *known;
        }
        let no = EndpointNo(self.endpoints.len());
        self.endpoints.push(Endpoint::new(name, rules));
        self.endpoint_names.insert(name.into(), no);
        no
    }

    /// Assigns a name to an endpoint.
    pub fn name_endpoint(&mut self, name: &str, endpoint: EndpointNo) {
        self.endpoint_names.insert(name.into(), endpoint);
    }

    pub fn worker(&mut self, name: &str) -> WorkerNo {
        if let Some(known) = self.worker_names.get(name) {
            return *known;
        }
        let no = WorkerNo(self.workers.len());
        self.workers.push(WorkerModel::new(name));
        self.worker_names.insert(name.into(), no);
        no
    }

    pub fn find_job(&self, id: &str) -> Option<JobNo> {
        self.job_names.get(id).copied()
    }

    /// Returns the job with this id, and whether it is new.
    pub fn job(&mut self, id: &str, endpoint: EndpointNo, now: EventTime) -> (JobNo, bool) {
        if let Some(known) = self.find_job(id) {
            return (known, false);
        }
        let no = JobNo(self.jobs.len());
        self.jobs.push(Some(Box::new(Job::new(id, endpoint, now))));
        self.job_names.insert(id.into(), no);
        self.endpoints[endpoint.0].jobs.push(no);
        (no, true)
    }

    pub fn get(&self, job: JobNo) -> Option<&Job> {
        self.jobs[job.0].as_deref()
    }

    pub fn get_mut(&mut self, job: JobNo) -> Option<&mut Job> {
        self.jobs[job.0].as_deref_mut()
    }

    /// Returns a job and its endpoint for changes.
    pub fn with_endpoint(&mut self, job: JobNo) -> Option<(&mut Job, &mut Endpoint)> {
        let job = self.jobs[job.0].as_deref_mut()?;
        let endpoint = &mut self.endpoints[job.endpoint.0];
        Some((job, endpoint))
    }

    /// Removes a job that no request can show.
    pub fn forget(&mut self, no: JobNo) {
        let Some(job) = self.jobs[no.0].take() else { return };
        self.job_names.remove(&job.id);
        self.endpoints[job.endpoint.0].jobs.retain(|known| *known != no);
    }

    /// Returns all remembered jobs, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = (JobNo, &Job)> {
        self.jobs.iter().enumerate().filter_map(|(no, job)| Some((JobNo(no), job.as_deref()?)))
    }
}
