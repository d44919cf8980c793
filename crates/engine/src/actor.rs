//! One endpoint's actor: the task that owns the endpoint's queue. No other task reads or changes the queue.
//!
//! Only [`Actor::run`] and [`Actor::reload`] wait; every handler is synchronous. One drain of the mailbox is a round. The
//! writes of a round go to the shard's committer as one [`CommitRequest`], together with the replies and signals that are
//! released when the writes are durable.
//!
//! A broken invariant panics. The round is then void, and the queue is dropped and loaded from rows, as after a failed
//! commit.

mod broken;
mod handlers;
pub(crate) mod held_reply;
mod input_budget;
mod job_traces;
pub(crate) mod mailbox;
mod parked_takes;
pub(crate) mod post_commit;
pub(crate) mod query;
mod reload;
pub(crate) mod request;
#[cfg(test)]
mod scene;
mod streams;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{Durability, JobId, Millis};
use longshore_queue::{Effects, Queue};
use longshore_store::Write;
use tokio::sync::OwnedSemaphorePermit;

use crate::committer::{CommitProgress, CommitRequest, CommitSender};
use crate::endpoint_shared::EndpointShared;
use crate::failures::VerbErrors;
use crate::job_feed::JobCounts;
use crate::traces::AttemptMarks;
use held_reply::HeldReply;
use mailbox::{Admitted, Mailbox};
use parked_takes::ParkedTakes;
use post_commit::PostCommit;
use request::EndWaiter;
use streams::StreamTable;

pub(crate) use reload::{LoadedQueue, load_queue};

/// Requests that an actor handles between two readings of the clock. Bounds a round, and so a commit request.
const ROUND: usize = 256;
/// A timer that is late by more than this, in ms, means that the process or the computer was suspended.
const OVERSLEPT_MS: u64 = 500;

/// The state of one endpoint's actor. One per endpoint; volatile, except that `queue` is derived from rows.
pub(crate) struct Actor {
    shared: Arc<EndpointShared>,
    queue: Queue,
    mailbox: Mailbox,
    committer: CommitSender,
    progress: Arc<CommitProgress>,
    /// Counts this actor's reloads. A commit request of an older generation is rejected by the committer.
    generation: u64,
    /// The number of the last commit request, counted from 1. A reload sets it back to the last durable one.
    seq: u64,
    /// The time of this round.
    now: Millis,
    /// The commit request with the last slice of a verb that has more slices to do. The next slice follows when that
    /// request is durable, so that requests are served between the slices of a million expired jobs.
    slice: u64,

    parked: ParkedTakes,
    /// Clients that wait for the end of a job. Ordered, so that a simulation wakes them in the same order every time.
    end_waiters: BTreeMap<JobId, Vec<EndWaiter>>,
    streams: StreamTable,
    /// The names of each job's payload files that are deleted with the job.
    blobs: BTreeMap<JobId, Vec<String>>,
    /// The name of each job's output file, if the output was written since the queue was loaded. A new output replaces and
    /// deletes the file.
    outputs: BTreeMap<JobId, String>,
    /// What happened during running attempts, for their spans; empty without traces. After a reload it begins anew.
    marks: BTreeMap<JobId, AttemptMarks>,
    /// The server stops or the endpoint is deleted: takes and waits are answered immediately.
    releasing: bool,
    /// Present while the jobs are deleted; gets the reply when all deletions are durable.
    deleting: Option<request::ReplySender<()>>,
    /// The wait for input budget, if the input of the next job does not fit now.
    budget_wait: Option<input_budget::PermitWait>,
    /// The permit that `budget_wait` returned. It is for this round; the part that the round does not use is given back.
    input_permit: Option<OwnedSemaphorePermit>,

    /// The buffers for the effects of a verb, reused; empty between two verbs.
    effects: Effects,
    /// The errors that the present verb stores; empty between two verbs.
    errors: VerbErrors,
    // The results of this round, until `flush`.
    writes: Vec<Write>,
    held: Vec<HeldReply>,
    post_commit: PostCommit,
    /// The part of the request budget that the requests of this round take.
    permit: Option<OwnedSemaphorePermit>,
    /// A parked take may get a job now.
    jobs_are_ready: bool,
    /// An invariant is broken: no request is handled until the queue is loaded again.
    is_broken: bool,
    /// Retries in the queue's counters after the last round.
    retried: u64,
    reload_backoff: broken::ReloadBackoff,
}

impl Actor {
    /// Returns an actor for a queue that was loaded from rows. `blobs` has the names of the jobs' payload files.
    pub(crate) fn new(
        shared: Arc<EndpointShared>,
        queue: Queue,
        blobs: BTreeMap<JobId, Vec<String>>,
        mailbox: Mailbox,
        committer: CommitSender,
    ) -> Self {
        let streams = StreamTable::new(queue.counters().reserved_seq);
        let retried = queue.counters().retried;
        Self {
            now: shared.now(),
            shared,
            queue,
            mailbox,
            committer,
            progress: Arc::default(),
            generation: 0,
            seq: 0,
            slice: 0,
            parked: ParkedTakes::default(),
            end_waiters: BTreeMap::new(),
            streams,
            blobs,
            outputs: BTreeMap::new(),
            marks: BTreeMap::new(),
            releasing: false,
            deleting: None,
            budget_wait: None,
            input_permit: None,
            effects: Effects::default(),
            errors: VerbErrors::default(),
            writes: Vec::new(),
            held: Vec::new(),
            post_commit: PostCommit::default(),
            permit: None,
            jobs_are_ready: false,
            is_broken: false,
            retried,
            reload_backoff: broken::ReloadBackoff::default(),
        }
    }

    /// Runs until the last handle is dropped or the endpoint is deleted.
    pub(crate) async fn run(mut self) {
        let mut requests = Vec::new();
        let progress = Arc::clone(&self.progress);
        loop {
            if self.is_broken || progress.generation.load(Ordering::Acquire) != self.generation {
                self.reload().await;
                self.read_clock();
                // Parked takes may get jobs of the loaded queue, and the supervisor is notified of the load.
                self.run_round(|actor| {
                    // The request to release waits was rejected if it arrived before the queue was loaded.
                    if actor.shared.stopping.load(Ordering::Acquire) {
                        actor.release_waits();
                    }
                    actor.tick();
                });
                continue;
            }
            self.read_clock();
            // Read before the deadline: a commit that becomes durable between the two readings still wakes the select.
            let awaits_commit = self.deleting.is_some() || !self.is_slice_durable();
            let (asleep_at, due_in) = (self.now(), self.due_in());
            let awaits_budget = self.budget_wait.is_some();
            tokio::select! {
                biased;
                () = progress.failed.notified() => continue,
                received = self.mailbox.recv_many(&mut requests, ROUND) => {
                    if received == 0 {
                        return;
                    }
                    self.gather(&mut requests).await;
                }
                () = progress.advanced.notified(), if awaits_commit => {}
                permit = input_budget::permit(&mut self.budget_wait), if awaits_budget => {
                    self.put_input_permit(permit);
                }
                () = tokio::time::sleep(due_in.unwrap_or_default()), if due_in.is_some() => {}
            }
            self.read_clock();
            let has_overslept = due_in.is_some_and(|due_in| self.has_overslept(asleep_at, due_in));
            self.run_round(|actor| {
                for request in requests.drain(..) {
                    actor.accept(request);
                }
                if has_overslept {
                    actor.apply(|queue, now, _| queue.renew_leases(now));
                }
                actor.tick();
            });
        }
    }

    /// Yields once before draining the rest of the mailbox, so that runnable connections send their requests too. With 16
    /// busy connections a round then has 12 requests instead of 1.
    async fn gather(&mut self, requests: &mut Vec<Admitted>) {
        tokio::task::yield_now().await;
        while requests.len() < ROUND
            && let Ok(request) = self.mailbox.try_recv()
        {
            requests.push(request);
        }
    }

    /// Whether the timer of `due_in`, set at `asleep_at`, was late by more than [`OVERSLEPT_MS`]. Pings were not received
    /// during that time, so that worker leases have to be renewed.
    fn has_overslept(&self, asleep_at: Millis, due_in: Duration) -> bool {
        self.now().since(asleep_at + due_in.as_millis() as u64) > OVERSLEPT_MS
    }

    /// The time until the queue's next deadline. `None` if there is none, or if a slice has to become durable first.
    fn due_in(&self) -> Option<Duration> {
        if self.deleting.is_some() {
            // The next slice is deleted when the last one is durable.
            return self.is_all_durable().then_some(Duration::ZERO);
        }
        let at = self.queue.next_deadline().filter(|_| self.is_slice_durable())?;
        Some(Duration::from_millis(at.since(self.now())))
    }

    /// Runs what is due by time, one slice at most, and then serves parked takes.
    fn tick(&mut self) {
        if self.deleting.is_some() {
            self.delete_slice();
        } else if self.is_slice_durable() && self.is_due() {
            self.apply(Queue::tick);
            if self.is_due() && !self.writes.is_empty() {
                self.slice = self.seq + 1;
            }
        }
        self.serve_parked();
    }

    /// Whether a deadline of the queue has passed.
    fn is_due(&self) -> bool {
        self.queue.next_deadline().is_some_and(|at| at <= self.now())
    }

    /// Ends the round: sends its writes and held replies to the committer. If there is nothing to write and every earlier
    /// round is durable, the replies are released immediately.
    fn flush(&mut self) {
        // The part of the input budget that this round did not use is given back.
        self.input_permit = None;
        self.publish();
        if let Some(counters) = self.queue.take_counters() {
            // After a failed commit, the counters are lower.
            self.shared.metrics.activity.retried(counters.retried.saturating_sub(self.retried));
            self.retried = counters.retried;
            let endpoint = self.shared.no;
            self.writes.push(Write::PutCounters(endpoint, counters));
        }
        let durability = self.durability();
        if !self.post_commit.is_empty() {
            self.note_counts();
            let post_commit = std::mem::take(&mut self.post_commit);
            self.held.push(HeldReply::PostCommit(Box::new(post_commit), Arc::clone(&self.shared)));
        }
        let permit = self.permit.take();
        if self.writes.is_empty() && self.held.is_empty() {
            return;
        }
        // The next round is likely to have the same size.
        let next = Vec::with_capacity(self.held.len());
        let held = std::mem::replace(&mut self.held, next);
        if self.is_all_durable() {
            for reply in held {
                reply.release(Ok(()));
            }
            return;
        }
        self.seq += 1;
        let next = Vec::with_capacity(self.writes.len());
        let writes = std::mem::replace(&mut self.writes, next);
        let request = CommitRequest {
            durability,
            writes,
            held,
            progress: Arc::clone(&self.progress),
            generation: self.generation,
            seq: self.seq,
            _permit: permit,
        };
        // The committer outlives its actors: it ends when the last one has dropped its sender.
        let _ = self.committer.send(request);
    }

    /// How durable the writes of this round must be. With payload files to delete they are synced, also those of a buffered
    /// endpoint: a power cut would otherwise bring back rows that name these files.
    fn durability(&self) -> Durability {
        if self.post_commit.blobs.is_empty() { self.shared.record().durability } else { Durability::Synced }
    }

    /// Publishes the load of the endpoint after this round.
    fn publish(&self) {
        let (load, shared) = (self.queue.load(), &self.shared);
        if shared.balancer.is_none() {
            shared.running_workers.store(self.queue.running_workers(), Ordering::Relaxed);
            shared.known_workers.store(self.queue.known_workers(), Ordering::Relaxed);
        }
        shared.known_jobs.store(self.queue.len(), Ordering::Relaxed);
        shared.metrics.activity.publish_load(load.queued, load.running, load.oldest_normal_since);
    }

    /// Adds the numbers of jobs to the changes of this round, if a reader of events is there.
    fn note_counts(&mut self) {
        if self.post_commit.is_watched {
            let counts = self.job_counts();
            self.post_commit.changes.get_or_insert_default().counts = counts;
        }
    }

    fn job_counts(&self) -> JobCounts {
        let (load, counters) = (self.queue.load(), self.queue.counters());
        JobCounts {
            queued: load.queued,
            running: load.running,
            completed: counters.completed,
            failed: counters.failed,
            cancelled: counters.cancelled,
            retried: counters.retried,
            states: self.queue.state_counts(),
        }
    }

    /// Whether this round has nothing to write and every earlier round is durable.
    fn is_all_durable(&self) -> bool {
        self.writes.is_empty() && self.progress.durable_seq.load(Ordering::Acquire) == self.seq
    }

    /// Whether the last slice of an unfinished verb is durable; true if there is none.
    fn is_slice_durable(&self) -> bool {
        self.slice <= self.progress.durable_seq.load(Ordering::Acquire)
    }

    /// The time of this round. The clock is read before and after each wait, not for each request.
    fn now(&self) -> Millis {
        self.now
    }

    fn read_clock(&mut self) {
        self.now = self.shared.now();
    }
}
