//! The writer threads: a free thread takes all queued requests, writes them as one group, syncs and replies.
//!
//! Requests queue while groups sync, so a slower disk gets larger groups. Up to `SYNCS_MAX` groups are in flight: disks
//! run that many syncs in the time of one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use longshore_model::{Epoch, ShardId};
use tokio::sync::oneshot;

use super::group_commit::{Commit, GroupCommit, Results, WriteStatus};
use crate::embedded::compaction::Compaction;
use crate::embedded::log::SyncTicket;
use crate::embedded::log::active_segment::SYNCS_MAX;
use crate::embedded::recovery::data_dir::DataDir;
use crate::{Payload, StoreError, Write};

/// Batches per group, so that the first batches of a burst do not wait for the write of all of it.
const GROUP_BATCHES_MAX: usize = 1_024;
/// Bytes of inline payloads from which on no batch is added to a group, for the same reason.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// Age at which a buffered commit is synced. Its promise is 100 ms; the difference is for the sync itself.
const SYNC_AFTER: Duration = Duration::from_millis(70);

/// Pause before a failed sync of buffered commits is retried.
const SYNC_RETRY_AFTER: Duration = Duration::from_secs(1);

type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

/// A request to the writer threads, with the channel of its reply.
#[derive(Debug)]
pub(in crate::embedded) enum Request {
    /// Writes a batch in a group.
    Commit(Commit, ReplySender<()>),
    /// Raises the epochs of shards for a new owner.
    Claim(Vec<ShardId>, ReplySender<Vec<Epoch>>),
    /// Raises the epochs of shards that their owner gives up.
    Release(Vec<(ShardId, Epoch)>, ReplySender<()>),
}

/// The handle of the writer threads. Dropping it serves the queued requests, ends the threads and unlocks the directory.
#[derive(Debug)]
pub(in crate::embedded) struct WriterPool {
    shared: Arc<WriterShared>,
    threads: Vec<JoinHandle<()>>,
    // Dropped last: another server may open the directory from then on.
    _data_dir: DataDir,
}

impl WriterPool {
    /// Starts the threads on an open directory.
    pub fn start(
        data_dir: DataDir,
        group_commit: GroupCommit,
        compaction: Compaction,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(WriterShared::new(group_commit, compaction));
        let mut writer = Self { shared, threads: Vec::new(), _data_dir: data_dir };
        for number in 0..SYNCS_MAX {
            let shared = Arc::clone(&writer.shared);
            let thread = std::thread::Builder::new()
                .name("store-writer".into())
                .spawn(move || shared.serve(number))
                .map_err(|error| StoreError::Io(format!("cannot start a writer thread: {error}")))?;
            writer.threads.push(thread);
        }
        Ok(writer)
    }

    /// Queues a request and returns a future of its reply. The request is served even if the future is dropped.
    pub fn request<T, F>(&self, request: F) -> impl Future<Output = Result<T, StoreError>> + use<T, F>
    where
        F: FnOnce(ReplySender<T>) -> Request,
    {
        let (sender, reply) = oneshot::channel();
        self.shared.put(request(sender));
        async move {
            reply.await.unwrap_or_else(|_| {
                Err(StoreError::Io("the writer threads have stopped; restart the server".into()))
            })
        }
    }
}

impl Drop for WriterPool {
    fn drop(&mut self) {
        self.shared.requests().is_closed = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // The thread itself has reported a panic.
            let _ = thread.join();
        }
    }
}

/// The state that the threads share. Requests are dequeued only while holding the write-state lock.
#[derive(Debug)]
struct WriterShared {
    requests: Mutex<RequestQueue>,
    /// Signals a request, the end of requests, or a change of the time of maintenance.
    arrived: Condvar,
    write_state: Mutex<WriteState>,
    /// Signals that no sync is in flight, or that a thread with exclusive access is done.
    settled: Condvar,
}

#[derive(Debug, Default)]
struct RequestQueue {
    /// Bounded by the senders: a shard's committer has a few batches in flight, whose bytes the engine's request budget bounds.
    /// Every other sender waits for the result before its next request.
    requests: VecDeque<Request>,
    /// The time of the next maintenance if no request comes before; `None` if none is needed.
    maintenance_at: Option<Instant>,
    is_closed: bool,
}

/// The log and what its writers need to know. Its lock is the write-state lock.
#[derive(Debug)]
struct WriteState {
    group_commit: GroupCommit,
    compaction: Compaction,
    /// The replies of the groups in flight, the oldest group first.
    waiting: VecDeque<Vec<ReplySender<()>>>,
    /// The number of threads that wait until no sync is in flight. While it is not 0, no other thread writes.
    exclusive_waiters: u32,
    /// The time at which the unsynced commits must be synced.
    sync_due: Option<Instant>,
}

/// Commits, their replies, and the bytes of their inline payloads.
#[derive(Default)]
struct GroupBuilder {
    commits: Vec<Commit>,
    replies: Vec<ReplySender<()>>,
    bytes: usize,
}

impl WriterShared {
    fn new(group_commit: GroupCommit, compaction: Compaction) -> Self {
        let waiting = VecDeque::new();
        let write_state =
            WriteState { group_commit, compaction, waiting, exclusive_waiters: 0, sync_due: None };
        Self {
            requests: Mutex::default(),
            arrived: Condvar::new(),
            write_state: Mutex::new(write_state),
            settled: Condvar::new(),
        }
    }

    fn put(&self, request: Request) {
        let mut requests = self.requests();
        if requests.is_closed {
            // Dropping the request drops its reply channel: the future then reports that the threads have stopped.
            return;
        }
        requests.requests.push_back(request);
        drop(requests);
        self.arrived.notify_one();
    }

    fn requests(&self) -> MutexGuard<'_, RequestQueue> {
        // No change of the queue panics half-way, so a poisoned lock guards a valid queue.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of one writer thread.
    fn serve(&self, thread: usize) {
        let _stop_on_panic = StopOnPanic(self);
        while self.wait() {
            // Poisoned: another thread panicked. The log on disk is valid; no thread writes to it again.
            let Ok(write_state) = self.write_state.lock() else { return };
            if self.serve_group(write_state, thread).is_none() {
                return;
            }
        }
        // For the last thread to end no sync is in flight.
        if let Ok(mut write_state) = self.write_state.lock()
            && write_state.group_commit.log.is_settled()
        {
            write_state.seal();
        }
    }

    /// Waits for a request or for the time of maintenance. Returns `false` when the queue is closed and empty.
    fn wait(&self) -> bool {
        let mut requests = self.requests();
        loop {
            let now = Instant::now();
            if !requests.requests.is_empty() {
                return true;
            }
            if requests.is_closed {
                return false;
            }
            if requests.maintenance_at.is_some_and(|at| at <= now) {
                requests.maintenance_at = None;
                return true;
            }
            requests = match requests.maintenance_at {
                Some(at) => {
                    self.arrived.wait_timeout(requests, at - now).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.arrived.wait(requests).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Serves one group or one other request, then maintains the log. Returns `None` after another thread panicked.
    fn serve_group(&self, write_state: MutexGuard<'_, WriteState>, thread: usize) -> Option<()> {
        let mut write_state =
            self.settled.wait_while(write_state, |write_state| write_state.exclusive_waiters > 0).ok()?;
        let mut committed_bytes = 0;
        let batches = self.take_batches();
        if batches.commits.is_empty() {
            if let Some(request) = self.take_other() {
                write_state = self.wait_settled(write_state)?;
                write_state.serve_other(request);
            }
        } else {
            committed_bytes = batches.bytes as u64;
            write_state = self.commit(write_state, batches, thread)?;
        }
        if write_state.needs_maintenance() {
            write_state = self.wait_settled(write_state)?;
            write_state.maintain(committed_bytes);
        }
        write_state.group_commit.log.note_end();
        // Under the write-state lock, so that an older time does not replace a newer one.
        self.requests().maintenance_at = write_state.next_maintenance();
        Some(())
    }

    /// Waits until no sync is in flight and returns the write state. Other threads write nothing before that.
    fn wait_settled<'a>(
        &self,
        mut write_state: MutexGuard<'a, WriteState>,
    ) -> Option<MutexGuard<'a, WriteState>> {
        write_state.exclusive_waiters += 1;
        let mut write_state = self
            .settled
            .wait_while(write_state, |write_state| !write_state.group_commit.log.is_settled())
            .ok()?;
        assert!(write_state.waiting.is_empty(), "a reply is held for a group that is not in flight");
        write_state.exclusive_waiters -= 1;
        self.settled.notify_all();
        Some(write_state)
    }

    /// Dequeues the batches up to the first claim or release: these keep their order relative to batches.
    fn take_batches(&self) -> GroupBuilder {
        let mut batches = GroupBuilder::default();
        let mut requests = self.requests();
        while batches.commits.len() < GROUP_BATCHES_MAX
            && batches.bytes < GROUP_BYTES_MAX
            && let Some(Request::Commit(commit, reply)) =
                requests.requests.pop_front_if(|request| matches!(request, Request::Commit(..)))
        {
            batches.bytes += size_of_payloads(&commit);
            batches.commits.push(commit);
            batches.replies.push(reply);
        }
        batches
    }

    fn take_other(&self) -> Option<Request> {
        self.requests().requests.pop_front_if(|request| !matches!(request, Request::Commit(..)))
    }

    /// Writes a group, and syncs it without the write-state lock.
    fn commit<'a>(
        &'a self,
        mut write_state: MutexGuard<'a, WriteState>,
        batches: GroupBuilder,
        thread: usize,
    ) -> Option<MutexGuard<'a, WriteState>> {
        let GroupBuilder { commits, replies, .. } = batches;
        let group = write_state.group_commit.encode(commits);
        if !write_state.group_commit.is_ready(&group) {
            let commits = write_state.group_commit.discard(group);
            let mut write_state = self.wait_settled(write_state)?;
            let answers = write_state.group_commit.commit(commits);
            write_state.answer(replies, answers);
            return Some(write_state);
        }
        match write_state.group_commit.write(group) {
            WriteStatus::Answered(answers) => write_state.answer(replies, answers),
            WriteStatus::TooBig(group) => {
                let commits = write_state.group_commit.discard(group);
                write_state = self.wait_settled(write_state)?;
                let answers = write_state.group_commit.commit(commits);
                write_state.answer(replies, answers);
            }
            WriteStatus::InFlight => {
                write_state.waiting.push_back(replies);
                if let Some(ticket) = write_state.group_commit.ticket(thread) {
                    return self.sync(write_state, ticket);
                }
                let answered = write_state.group_commit.settle_buffered();
                write_state.reply(answered);
            }
        }
        Some(write_state)
    }

    fn sync<'a>(
        &'a self,
        write_state: MutexGuard<'a, WriteState>,
        ticket: SyncTicket,
    ) -> Option<MutexGuard<'a, WriteState>> {
        drop(write_state);
        let synced = ticket.sync();
        let mut write_state = self.write_state.lock().ok()?;
        let answered = write_state.group_commit.settle(ticket, synced);
        write_state.reply(answered);
        if write_state.exclusive_waiters > 0 && write_state.group_commit.log.is_settled() {
            self.settled.notify_all();
        }
        Some(write_state)
    }
}

impl WriteState {
    /// Sends the replies of the oldest groups in flight.
    fn reply(&mut self, answered: Vec<Results>) {
        for answers in answered {
            // `StopOnPanic` has dropped the replies if another thread panicked.
            if let Some(replies) = self.waiting.pop_front() {
                self.answer(replies, answers);
            }
        }
    }

    /// Notes the durable end of the log and sends a reply for each batch. A copy of a running server's log ends at the note:
    /// it must have every commit whose consequences can be seen, such as the removal of a large payload.
    fn answer(&mut self, replies: Vec<ReplySender<()>>, answers: Results) {
        assert_eq!(replies.len(), answers.len(), "one reply per batch");
        self.group_commit.log.note_end();
        for (reply, answer) in replies.into_iter().zip(answers) {
            // A closed channel is no error: the requester dropped its future.
            let _ = reply.send(answer);
        }
    }

    fn serve_other(&mut self, request: Request) {
        match request {
            Request::Commit(commit, reply) => {
                let answers = self.group_commit.commit(vec![commit]);
                self.answer(vec![reply], answers);
            }
            Request::Claim(shards, reply) => _ = reply.send(self.group_commit.raise_epochs(&shards)),
            Request::Release(shards, reply) => {
                let released = self.group_commit.release(&shards);
                // A release is sent at shutdown: usually no write follows.
                self.seal();
                let _ = reply.send(released);
            }
        }
    }

    fn needs_maintenance(&self) -> bool {
        self.is_sync_due() || self.compaction.is_due(&self.group_commit.log)
    }

    fn is_sync_due(&self) -> bool {
        let log = &self.group_commit.log;
        log.is_overdue() || log.is_unsynced() && self.sync_due.is_some_and(|due| due <= Instant::now())
    }

    /// Syncs overdue commits and does a step of the compaction. No sync may be in flight.
    fn maintain(&mut self, committed_bytes: u64) {
        if self.is_sync_due() {
            self.sync();
        }
        self.compaction.step(&mut self.group_commit.log, committed_bytes);
    }

    fn sync(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.group_commit.log.sync() {
            // The commits are acknowledged as buffered, so a power cut may undo them until a sync succeeds.
            tracing::error!(%error, "sync of buffered commits failed, retrying; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_RETRY_AFTER);
        }
    }

    /// Seals the log for a shutdown. No sync may be in flight.
    fn seal(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.group_commit.log.seal() {
            tracing::error!(%error, "sealing the log failed; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_RETRY_AFTER);
        }
    }

    /// Returns the time at which the log needs maintenance; `None` if it needs none.
    fn next_maintenance(&mut self) -> Option<Instant> {
        if self.compaction.is_due(&self.group_commit.log) {
            return Some(Instant::now());
        }
        if !self.group_commit.log.is_unsynced() {
            self.sync_due = None;
            return None;
        }
        Some(*self.sync_due.get_or_insert_with(|| Instant::now() + SYNC_AFTER))
    }
}

/// If its thread panics: ends the other threads and drops all replies, so that no request waits forever.
struct StopOnPanic<'a>(&'a WriterShared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut requests = self.0.requests();
            requests.is_closed = true;
            requests.requests.clear();
            drop(requests);
            self.0.write_state.lock().unwrap_or_else(PoisonError::into_inner).waiting.clear();
            self.0.arrived.notify_all();
            self.0.settled.notify_all();
        }
    }
}

fn size_of_payloads(commit: &Commit) -> usize {
    let inline = |payload: &Payload| match payload {
        Payload::Inline(bytes) => bytes.len(),
        Payload::Blob(_) => 0,
    };
    let size = |write: &Write| match write {
        Write::PutInput(_, input) => inline(input),
        Write::PutOutcome(_, outcome) => outcome.output.as_ref().map_or(0, inline),
        Write::AppendChunk(_, chunk) => chunk.bytes.len(),
        _ => 0,
    };
    commit.batch.writes.iter().map(size).sum()
}
