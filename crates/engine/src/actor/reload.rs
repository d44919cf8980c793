//! Loads a queue from rows: at the start, after a failed commit, and after a broken invariant.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{Endpoint, JobEnd, JobId, JobKey, JobRow};
use longshore_planted::{Bug, planted};
use longshore_queue::{Effects, Queue};
use longshore_store::{StoreError, WebhookRow};
use tokio::time::Instant;

use super::Actor;
use super::mailbox::Admitted;
use super::post_commit::PostCommit;
use super::request::{Request, Source, unavailable};
use crate::EndpointError;
use crate::endpoint_shared::blob_folder;
use crate::services::Services;
use crate::supervisor::FleetEvent;

/// Rows that are read from the store in one call.
const PAGE: usize = 10_000;
/// How long mutations are rejected after a reload, and how long a failed reload waits before it is retried.
const PAUSE: Duration = Duration::from_millis(500);

/// A queue that was loaded from rows.
pub(crate) struct LoadedQueue {
    pub(crate) queue: Queue,
    /// Pending webhook calls, with the job and the end that each reports.
    pub(crate) owed: Vec<(WebhookRow, JobId, JobEnd)>,
    /// The names of the payload files of each job.
    pub(crate) blobs: BTreeMap<JobId, Vec<String>>,
}

/// Loads an endpoint's queue, its pending webhook calls and the names of its payload files.
///
/// `sweep` deletes payload files without a job: a crash between the writes of a file and of its row leaves them. It may be
/// set only at the start: later, a submit may have written the file of a job that has no row yet.
///
/// # Errors
///
/// The error of the store if a row cannot be read. Files that cannot be listed or deleted are only logged.
pub(crate) async fn load_queue(
    services: &Services,
    record: &Endpoint,
    sweep: bool,
) -> Result<LoadedQueue, StoreError> {
    let calls = services.store.webhooks(record.no).await?;
    let mut calls: HashMap<JobKey, WebhookRow> = calls.into_iter().map(|call| (call.job, call)).collect();
    let mut pending = Vec::new();

    let counters = services.store.counters(record.no).await?;
    let mut queue = Queue::new(record.no, services.queue_settings(record), counters);
    let mut after_seq = 0;
    loop {
        let rows = services.store.jobs(record.no, after_seq, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after_seq = last.key.seq;
        for row in rows {
            if let Some(end) = row.pending_end() {
                pending.extend(calls.remove(&row.key).map(|call| (call, row.id, end)));
            }
            queue.restore(row, services.clock.now());
        }
        tokio::task::yield_now().await;
    }
    let blobs = load_blobs(services, record, &queue, sweep).await;
    Ok(LoadedQueue { queue, owed: pending, blobs })
}

/// Returns the names of an endpoint's payload files by job; empty if the files cannot be listed.
async fn load_blobs(
    services: &Services,
    record: &Endpoint,
    queue: &Queue,
    sweep: bool,
) -> BTreeMap<JobId, Vec<String>> {
    if services.blobs.remote().is_some() {
        // A listing takes too long: the sweep tells the actor its files later.
        return BTreeMap::new();
    }
    let folder = blob_folder(record);
    let names = match services.blobs.list(&folder).await {
        Ok(names) => names,
        Err(error) => {
            tracing::warn!(%folder, %error, "payload files not listed");
            return BTreeMap::new();
        }
    };
    let mut by_job: BTreeMap<JobId, Vec<String>> = BTreeMap::new();
    for name in names {
        let has_files = |row: JobRow| !(row.state.is_terminal() && planted(Bug::OutputSwept));
        match owner(&name).filter(|job| queue.find_stored(*job).is_some_and(has_files)) {
            Some(job) => by_job.entry(job).or_default().push(name),
            None if !sweep => {}
            None => {
                if let Err(error) = services.blobs.delete(&name).await {
                    tracing::warn!(%name, %error, "orphaned payload file not deleted");
                }
            }
        }
    }
    by_job
}

/// The job in a payload file's name, which is `<endpoint no>/<job id>.<kind>`; `None` for any other name.
pub(super) fn owner(name: &str) -> Option<JobId> {
    let file = name.rsplit('/').next()?;
    file.split('.').next()?.parse().ok()
}

impl Actor {
    /// Drops the queue and loads it from rows, after a failed commit or a broken invariant. Replies that depend on the
    /// dropped queue become errors. Parked takes stay; other waiters are dropped, and their requests register again.
    ///
    /// After a broken invariant, all requests are rejected until the backoff's wait is over, and then the queue is loaded.
    /// After a failed commit, the queue is loaded immediately, and then mutations are rejected for [`PAUSE`].
    pub(super) async fn reload(&mut self) {
        let is_broken = self.is_broken;
        let why = if is_broken {
            "an invariant of the queue is broken, the queue is being reloaded"
        } else {
            "an earlier change was not written"
        };
        let why = EndpointError::Unavailable(why.to_owned());
        self.void_round(&why);
        if is_broken {
            let reload_at = self.reload_backoff.reload_at();
            self.answer_until(reload_at, |_, admitted| admitted.reject(&why)).await;
            self.wait_settled().await;
        }
        self.generation = self.progress.generation.load(Ordering::Acquire);
        loop {
            let record = self.shared.record();
            match load_queue(&self.shared.services, &record, false).await {
                Ok(loaded) => {
                    self.catch_broken(|actor| actor.adopt(loaded));
                    if !is_broken {
                        self.pause(&why).await;
                    }
                    break;
                }
                Err(error) => {
                    let retry_ms = PAUSE.as_millis() as u64;
                    tracing::error!(endpoint = %record.id, %error, retry_ms, "queue reload failed, retrying");
                    let why = unavailable(&error);
                    self.answer_until(Instant::now() + PAUSE, |_, admitted| admitted.reject(&why)).await;
                }
            }
        }
    }

    /// Waits until the rounds in flight are durable or have failed. Rows that are read before that would not have the
    /// changes of these rounds.
    async fn wait_settled(&mut self) {
        let progress = &self.progress;
        while progress.durable_seq.load(Ordering::Acquire) != self.seq
            && progress.generation.load(Ordering::Acquire) == self.generation
        {
            tokio::select! {
                () = progress.advanced.notified() => {}
                () = progress.failed.notified() => {}
            }
        }
    }

    /// Drops the writes and signals of the round that is not flushed, and sends the error as its replies.
    fn void_round(&mut self, why: &EndpointError) {
        self.effects = Effects::default();
        self.writes.clear();
        self.post_commit = PostCommit::default();
        self.permit = None;
        for reply in std::mem::take(&mut self.held) {
            reply.release(Err(why));
        }
    }

    /// Rejects mutations for [`PAUSE`], so that a failing disk does not cause a reload for every submit. Queries are served,
    /// and a rejected request of a worker renews its lease.
    async fn pause(&mut self, why: &EndpointError) {
        let answer = |actor: &mut Self, admitted: Admitted| {
            if actor.is_broken {
                admitted.reject(why);
            } else if admitted.request().is_served_during_pause() {
                actor.run_round(|actor| actor.accept(admitted));
            } else {
                if let Source::Worker(worker) = admitted.request().source() {
                    actor.run_round(|actor| actor.apply(|queue, now, _| queue.touch_worker(now, worker)));
                }
                admitted.reject(why);
            }
        };
        self.answer_until(Instant::now() + PAUSE, answer).await;
    }

    /// Passes every request to `answer` until `end`. Returns early if the server stops or the last handle is dropped.
    async fn answer_until(&mut self, end: Instant, mut answer: impl FnMut(&mut Self, Admitted)) {
        while let Ok(Some(admitted)) = tokio::time::timeout_at(end, self.mailbox.recv()).await {
            self.read_clock();
            let stops = matches!(admitted.request(), Request::ReleaseWaits { .. });
            answer(self, admitted);
            if stops {
                return;
            }
        }
    }

    /// Replaces the names of the jobs' payload files. Of files that are not listed at a reload, those of the jobs that are
    /// still there stay known; others are orphans, which the sweep deletes.
    fn adopt_blobs(&mut self, mut listed: BTreeMap<JobId, Vec<String>>) {
        let (known, outputs) = (std::mem::take(&mut self.blobs), std::mem::take(&mut self.outputs));
        if self.shared.services.blobs.remote().is_some() {
            let outputs = outputs.into_iter().map(|(job, name)| (job, vec![name]));
            for (job, names) in known.into_iter().chain(outputs) {
                if self.queue.find_stored(job).is_some() {
                    listed.entry(job).or_default().extend(names);
                }
            }
        }
        self.blobs = listed;
    }

    /// Replaces the dropped queue by the loaded one. The new queue adopts the dropped queue's workers with fresh leases.
    fn adopt(&mut self, loaded: LoadedQueue) {
        let dropped = std::mem::replace(&mut self.queue, loaded.queue);
        self.is_broken = false;
        self.shared.enqueue_unsure_calls(loaded.owed);
        self.adopt_blobs(loaded.blobs);
        self.marks.clear();
        self.shared.services.payload_cache.clear();
        self.streams.reload(self.queue.counters().reserved_seq);
        self.seq = self.progress.durable_seq.load(Ordering::Acquire);
        self.slice = self.seq;
        self.queue.adopt_workers(&dropped, self.shared.now());
        self.shared.notify_fleet(FleetEvent::Demand);
        // The requests of dropped waiters read the job again.
        self.end_waiters.clear();
        self.jobs_are_ready = true;
        if self.shared.services.feeds.is_on() {
            // The commit that failed may have been written: each job may have changed.
            self.shared.job_feed.add_unknown(self.job_counts(), self.queue.len().max(1));
        }
        tracing::info!(endpoint = %self.shared.id, jobs = self.queue.len(), "queue reloaded");
    }
}
