//! One endpoint's actor: the only owner of its queue.
//!
//! All waiting happens in [`Actor::run`]; all deciding happens in synchronous methods. What is decided goes to
//! the shard's committer as one piece per round of the mailbox, with everything that may be said or done only
//! once it is durable.
//!
//! Deciding panics where an invariant is broken. Then the round is void, and the queue is dropped and loaded from rows,
//! as after a failed commit.

mod broken;
mod handlers;
pub(crate) mod held_reply;
mod input_budget;
mod parked_takes;
pub(crate) mod post_commit;
pub(crate) mod query;
mod reload;
pub(crate) mod request;
mod streams;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{JobId, Millis};
use longshore_queue::{Effects, Queue};
use longshore_store::Write;
use tokio::sync::mpsc;

use crate::committer::{CommitProgress, CommitRequest, CommitSender};
use crate::endpoint_shared::EndpointShared;
use held_reply::HeldReply;
use parked_takes::ParkedTakes;
use post_commit::PostCommit;
use request::{EndWaiter, Request};
use streams::StreamTable;

pub(crate) use reload::{LoadedQueue, load_queue};

/// Asks that are handled between two looks at the clock and the committer.
const ROUND: usize = 256;
/// Who sleeps so much longer than it wanted to was held up: the machine slept, or the process was stopped.
const OVERSLEPT_MS: u64 = 500;

pub(crate) struct Actor {
    shared: Arc<EndpointShared>,
    queue: Queue,
    mailbox: mpsc::UnboundedReceiver<Request>,
    committer: CommitSender,
    progress: Arc<CommitProgress>,
    generation: u64,
    seq: u64,
    now: Millis,
    /// The decision with the last slice of more than a slice that was due. The next one follows when it is on disk:
    /// a million jobs that end at once never stand in line before a submit.
    slice: u64,

    parked: ParkedTakes,
    /// Ordered, so that those who are told at once are told in the same order in every replay.
    end_waiters: BTreeMap<JobId, Vec<EndWaiter>>,
    streams: StreamTable,
    /// Files that belong to jobs, by the job's id.
    blobs: BTreeMap<JobId, Vec<String>>,
    /// The files of outputs that were written since the queue was loaded.
    outputs: BTreeMap<JobId, String>,
    /// The server stops: polls are answered at once.
    releasing: bool,
    deleting: Option<request::ReplySender<()>>,
    /// Waits for room for the input of the job that is next.
    turn: Option<input_budget::Turn>,
    /// Has come with it, for this round.
    room: Option<tokio::sync::OwnedSemaphorePermit>,

    /// What a verb causes, for its room; empty between two of them.
    effects: Effects,
    // What this round has decided so far.
    writes: Vec<Write>,
    held: Vec<HeldReply>,
    post_commit: PostCommit,
    jobs_are_ready: bool,
    /// An invariant is broken: nothing is decided until the queue is loaded again.
    is_broken: bool,
}

impl Actor {
    pub(crate) fn new(
        shared: Arc<EndpointShared>,
        queue: Queue,
        blobs: BTreeMap<JobId, Vec<String>>,
        mailbox: mpsc::UnboundedReceiver<Request>,
        committer: CommitSender,
    ) -> Self {
        let streams = StreamTable::new(queue.counters().reserved_seq);
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
            releasing: false,
            deleting: None,
            turn: None,
            room: None,
            effects: Effects::default(),
            writes: Vec::new(),
            held: Vec::new(),
            post_commit: PostCommit::default(),
            jobs_are_ready: false,
            is_broken: false,
        }
    }

    /// Runs until every handle is gone or the endpoint is demolished.
    pub(crate) async fn run(mut self) {
        let mut requests = Vec::new();
        let line = Arc::clone(&self.progress);
        loop {
            if self.is_broken || line.generation.load(Ordering::Acquire) != self.generation {
                self.reload().await;
                self.look_at_clock();
                // Open polls may find jobs now, and the fleet hears of the load.
                self.decide(Self::tick);
                continue;
            }
            self.look_at_clock();
            // Before the deadline is looked up: what becomes durable in between is heard of.
            let awaits_commit = self.deleting.is_some() || !self.is_slice_durable();
            let (asleep_at, due_in) = (self.now(), self.due_in());
            let waits_for_room = self.turn.is_some();
            tokio::select! {
                biased;
                () = line.failed.notified() => continue,
                received = self.mailbox.recv_many(&mut requests, ROUND) => {
                    if received == 0 {
                        return;
                    }
                    self.gather(&mut requests).await;
                }
                () = line.advanced.notified(), if awaits_commit => {}
                room = input_budget::come(&mut self.turn), if waits_for_room => self.has_room(room),
                () = tokio::time::sleep(due_in.unwrap_or_default()), if due_in.is_some() => {}
            }
            self.look_at_clock();
            let has_overslept = due_in.is_some_and(|due_in| self.has_overslept(asleep_at, due_in));
            self.decide(|actor| {
                for request in requests.drain(..) {
                    actor.handle(request);
                }
                if has_overslept {
                    actor.apply(|queue, now, _| queue.renew_leases(now));
                }
                actor.tick();
            });
        }
    }

    /// Lets whoever is about to ask do so first: an ask wakes the actor at once, before the other connections that
    /// have something to say. With 16 of them a round then takes 12 asks and not one, and so do commits.
    async fn gather(&mut self, requests: &mut Vec<Request>) {
        tokio::task::yield_now().await;
        while requests.len() < ROUND
            && let Ok(request) = self.mailbox.try_recv()
        {
            requests.push(request);
        }
    }

    /// Whether nobody listened for a while. The workers were not heard meanwhile, whatever they said.
    fn has_overslept(&self, asleep_at: Millis, due_in: Duration) -> bool {
        self.now().since(asleep_at + due_in.as_millis() as u64) > OVERSLEPT_MS
    }

    /// How long until the queue has something to do by itself.
    fn due_in(&self) -> Option<Duration> {
        if self.deleting.is_some() {
            // The next slice when the last one is on disk.
            return self.is_all_durable().then_some(Duration::ZERO);
        }
        let at = self.queue.next_deadline().filter(|_| self.is_slice_durable())?;
        Some(Duration::from_millis(at.since(self.now())))
    }

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

    fn is_due(&self) -> bool {
        self.queue.next_deadline().is_some_and(|at| at <= self.now())
    }

    /// Sends what this round decided to the committer. With nothing to write and nothing on its way there,
    /// answers leave at once.
    fn flush(&mut self) {
        // The part of the input budget that this round did not use is returned.
        self.room = None;
        let runners = self.queue.running_workers();
        self.shared.running_workers.store(runners, Ordering::Relaxed);
        if let Some(counters) = self.queue.take_counters() {
            let endpoint = self.shared.no;
            self.writes.push(Write::PutCounters(endpoint, counters));
        }
        if !self.post_commit.is_empty() {
            let after = std::mem::take(&mut self.post_commit);
            self.held.push(HeldReply::PostCommit(Box::new(after), Arc::clone(&self.shared)));
        }
        if self.writes.is_empty() && self.held.is_empty() {
            return;
        }
        // The next round is likely to be as long.
        let room = Vec::with_capacity(self.held.len());
        let held = std::mem::replace(&mut self.held, room);
        if self.is_all_durable() {
            for reply in held {
                reply.release(Ok(()));
            }
            return;
        }
        self.seq += 1;
        let room = Vec::with_capacity(self.writes.len());
        let writes = std::mem::replace(&mut self.writes, room);
        let prepared = CommitRequest {
            durability: self.shared.record().durability,
            writes,
            held,
            progress: Arc::clone(&self.progress),
            generation: self.generation,
            seq: self.seq,
        };
        // The committer outlives the actors: it ends when the last of them is gone.
        let _ = self.committer.send(prepared);
    }

    /// Whether there is nothing to write and nothing on its way to the disk.
    fn is_all_durable(&self) -> bool {
        self.writes.is_empty() && self.progress.durable_seq.load(Ordering::Acquire) == self.seq
    }

    fn is_slice_durable(&self) -> bool {
        self.slice <= self.progress.durable_seq.load(Ordering::Acquire)
    }

    /// The time of this round. The clock is looked at before and after the waiting, not for every ask.
    fn now(&self) -> Millis {
        self.now
    }

    fn look_at_clock(&mut self) {
        self.now = self.shared.now();
    }
}
