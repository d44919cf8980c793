//! From rows to a queue: at the start, after a commit that failed, and after an invariant that was broken.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{Endpoint, JobEnd, JobId, JobKey, JobRow};
use longshore_planted::{Bug, planted};
use longshore_queue::{Effects, Queue};
use longshore_store::{StoreError, WebhookRow};

use super::Actor;
use super::post_commit::PostCommit;
use super::request::{Request, unavailable};
use crate::EndpointError;
use crate::endpoint_shared::{Services, blob_folder};
use crate::supervisor::FleetEvent;

/// Rows that are read at once.
const PAGE: usize = 10_000;
/// How long to wait before the store is tried again; what would change something is refused meanwhile.
const PAUSE: Duration = Duration::from_millis(500);

/// A queue as it was stored.
pub(crate) struct LoadedQueue {
    pub(crate) queue: Queue,
    /// Webhook calls that are owed, and the end that each reports.
    pub(crate) owed: Vec<(WebhookRow, JobId, JobEnd)>,
    /// Payload files by job.
    pub(crate) blobs: BTreeMap<JobId, Vec<String>>,
}

/// Loads an endpoint's queue and what belongs to it.
///
/// With `sweep`, payload files without a job are deleted: they are left from a crash between file and row, or
/// between row and file. Only at the start, before anybody can be about to hand in a job with a new file.
pub(crate) async fn load_queue(
    ground: &Services,
    record: &Endpoint,
    sweep: bool,
) -> Result<LoadedQueue, StoreError> {
    let hooks = ground.store.webhooks(record.no).await?;
    let mut hooks: HashMap<JobKey, WebhookRow> = hooks.into_iter().map(|hook| (hook.job, hook)).collect();
    let mut owed = Vec::new();

    let counters = ground.store.counters(record.no).await?;
    let mut queue = Queue::new(record.no, ground.settings.of_queue(record), counters);
    let mut after_seq = 0;
    loop {
        let rows = ground.store.jobs(record.no, after_seq, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after_seq = last.key.seq;
        for row in rows {
            if let Some(end) = row.pending_end() {
                owed.extend(hooks.remove(&row.key).map(|hook| (hook, row.id, end)));
            }
            queue.restore(row, ground.clock.now());
        }
        tokio::task::yield_now().await;
    }
    let blobs = load_blobs(ground, record, &queue, sweep).await;
    Ok(LoadedQueue { queue, owed, blobs })
}

/// The payload files of an endpoint by job.
async fn load_blobs(
    ground: &Services,
    record: &Endpoint,
    queue: &Queue,
    sweep: bool,
) -> BTreeMap<JobId, Vec<String>> {
    let folder = blob_folder(record);
    let names = match ground.blobs.list(&folder).await {
        Ok(names) => names,
        Err(error) => {
            tracing::warn!(%folder, %error, "payload files could not be listed");
            return BTreeMap::new();
        }
    };
    let mut by_job: BTreeMap<JobId, Vec<String>> = BTreeMap::new();
    for name in names {
        let kept = |row: JobRow| !(row.state.is_terminal() && planted(Bug::OutputSwept));
        match owner(&name).filter(|job| queue.find_stored(*job).is_some_and(kept)) {
            Some(job) => by_job.entry(job).or_default().push(name),
            None if !sweep => {}
            None => {
                if let Err(error) = ground.blobs.delete(&name).await {
                    tracing::warn!(%name, %error, "an orphaned payload file could not be deleted");
                }
            }
        }
    }
    by_job
}

/// The job in a payload file's name: `<endpoint no>/<job id>.<kind>`.
fn owner(name: &str) -> Option<JobId> {
    let file = name.rsplit('/').next()?;
    file.split('.').next()?.parse().ok()
}

impl Actor {
    /// A commit failed, or an invariant is broken: nothing that was decided since has left. The queue is dropped and loaded
    /// from rows; waits stay. Then the disk gets a pause, in which queries are answered.
    pub(super) async fn reload(&mut self) {
        let why =
            if self.is_broken { "its queue is being reloaded" } else { "a change could not be written" };
        let why = EndpointError::Unavailable(why.to_owned());
        self.refuse_undecided(&why);
        if self.is_broken {
            self.wait_settled().await;
        }
        self.generation = self.progress.generation.load(Ordering::Acquire);
        loop {
            let record = self.shared.record();
            match load_queue(&self.shared.services, &record, false).await {
                Ok(loaded) => {
                    self.adopt(loaded);
                    break self.pause(&why).await;
                }
                Err(error) => {
                    tracing::error!(endpoint = %record.id, %error, "a queue could not be reloaded, trying again");
                    let why = unavailable(&error);
                    self.answer_for(PAUSE, |_, request| request.reject(&why)).await;
                }
            }
        }
    }

    /// Waits until the rounds that are in flight are durable, or have failed. Rows that were read earlier would be older
    /// than they.
    async fn wait_settled(&mut self) {
        let line = &self.progress;
        while line.durable_seq.load(Ordering::Acquire) != self.seq
            && line.generation.load(Ordering::Acquire) == self.generation
        {
            tokio::select! {
                () = line.advanced.notified() => {}
                () = line.failed.notified() => {}
            }
        }
    }

    fn refuse_undecided(&mut self, why: &EndpointError) {
        self.effects = Effects::default();
        self.writes.clear();
        self.post_commit = PostCommit::default();
        for reply in std::mem::take(&mut self.held) {
            reply.release(Err(why));
        }
    }

    /// Lets the disk have a pause after the queue was loaded, so that a full queue is not loaded again for every single
    /// submit. Queries are answered, changes are refused, and a worker that asks for one is alive all the same.
    async fn pause(&mut self, why: &EndpointError) {
        let answer = |actor: &mut Self, request: Request| {
            if actor.is_broken {
                request.reject(why);
            } else if request.is_served_during_pause() {
                actor.decide(|actor| actor.handle(request));
            } else {
                if let Some(worker) = request.sender() {
                    actor.decide(|actor| actor.apply(|queue, now, _| queue.touch_worker(now, worker)));
                }
                request.reject(why);
            }
        };
        self.answer_for(PAUSE, answer).await;
    }

    /// Answers requests in this way for a while.
    async fn answer_for(&mut self, pause: Duration, mut answer: impl FnMut(&mut Self, Request)) {
        let end = tokio::time::Instant::now() + pause;
        while let Ok(Some(request)) = tokio::time::timeout_at(end, self.mailbox.recv()).await {
            self.look_at_clock();
            answer(self, request);
        }
    }

    fn adopt(&mut self, loaded: LoadedQueue) {
        let dropped = std::mem::replace(&mut self.queue, loaded.queue);
        self.is_broken = false;
        self.blobs = loaded.blobs;
        self.outputs.clear();
        self.shared.services.payload_cache.clear();
        self.streams.reload(self.queue.counters().reserved_seq);
        self.seq = self.progress.durable_seq.load(Ordering::Acquire);
        self.slice = self.seq;
        self.queue.adopt_workers(&dropped, self.shared.now());
        self.shared.notify_fleet(FleetEvent::Demand);
        // Whoever waits for a job looks again.
        self.end_waiters.clear();
        self.jobs_are_ready = true;
        tracing::info!(endpoint = %self.shared.record().id, jobs = self.queue.len(), "the queue was reloaded");
    }
}
