//! The threads that write: whoever is free takes all that is waiting, writes it as one group, waits for the disk, answers.
//!
//! While one group syncs, the next one fills; so the slower the disk, the bigger the groups. A few can be under way at
//! once: a disk that takes 200 us for a sync takes no longer for four at the same time.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use longshore_model::{Epoch, ShardId};
use tokio::sync::oneshot;

use super::group_commit::{Answers, Commit, GroupCommit, WriteStatus};
use crate::embedded::compaction::Compaction;
use crate::embedded::log::SyncTicket;
use crate::embedded::log::active_segment::SYNCS_MAX;
use crate::embedded::recovery::data_dir::DataDir;
use crate::{Payload, StoreError, Write};

/// A group is cut here, so that one big burst does not make everybody wait for all of it.
const GROUP_BATCHES_MAX: usize = 1_024;
/// See [`GROUP_BATCHES_MAX`].
const GROUP_BYTES_MAX: usize = 8 << 20;
/// Buffered commits promise to be synced within 100 ms; the sync itself takes time too.
const SYNC_AFTER: Duration = Duration::from_millis(70);

/// After a sync that failed.
const SYNC_AGAIN_AFTER: Duration = Duration::from_secs(1);

type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer can be asked.
#[derive(Debug)]
pub(in crate::embedded) enum Request {
    /// Write a batch.
    Commit(Commit, ReplySender<()>),
    /// Take shards over.
    Claim(Vec<ShardId>, ReplySender<Vec<Epoch>>),
    /// Let shards go.
    Release(Vec<(ShardId, Epoch)>, ReplySender<()>),
}

/// The threads' handle: dropping it writes what is waiting, and gives the folder back.
#[derive(Debug)]
pub(in crate::embedded) struct WriterPool {
    desk: Arc<WriterShared>,
    threads: Vec<JoinHandle<()>>,
    // Dropped last: only then may another server have it.
    _folder: DataDir,
}

impl WriterPool {
    /// Starts the threads on an open folder.
    pub fn start(folder: DataDir, committer: GroupCommit, reclaim: Compaction) -> Result<Self, StoreError> {
        let desk = Arc::new(WriterShared::new(committer, reclaim));
        let mut writer = Self { desk, threads: Vec::new(), _folder: folder };
        for number in 0..SYNCS_MAX {
            let desk = Arc::clone(&writer.desk);
            let thread = std::thread::Builder::new()
                .name("store-writer".into())
                .spawn(move || desk.serve(number))
                .map_err(|error| StoreError::Io(format!("cannot start a thread: {error}")))?;
            writer.threads.push(thread);
        }
        Ok(writer)
    }

    /// Hands a request over and waits for its answer. The request is on its way when this returns, whether or not
    /// the answer is waited for.
    pub fn ask<T, F>(&self, request: F) -> impl Future<Output = Result<T, StoreError>> + use<T, F>
    where
        F: FnOnce(ReplySender<T>) -> Request,
    {
        let (reply, answer) = oneshot::channel();
        self.desk.put(request(reply));
        async move {
            answer.await.unwrap_or_else(|_| {
                Err(StoreError::Io("the threads that write have stopped; restart the server".into()))
            })
        }
    }
}

impl Drop for WriterPool {
    fn drop(&mut self) {
        self.desk.requests().is_closed = true;
        self.desk.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // A panic in there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// What the threads share. A request is taken from the inbox only by who has the pen.
#[derive(Debug)]
struct WriterShared {
    requests: Mutex<RequestQueue>,
    /// Something is in the inbox.
    arrived: Condvar,
    write_state: Mutex<WriteState>,
    /// The log is quiet, or somebody who waited for that is done.
    settled: Condvar,
}

#[derive(Debug, Default)]
struct RequestQueue {
    requests: VecDeque<Request>,
    /// When to look after the log, although nobody asks for anything.
    look_at: Option<Instant>,
    is_closed: bool,
}

/// The right to write.
#[derive(Debug)]
struct WriteState {
    group_commit: GroupCommit,
    compaction: Compaction,
    /// Those who wait for groups that are written, the oldest first.
    waiting: VecDeque<Vec<ReplySender<()>>>,
    /// So many wait until everything is settled: nobody else writes before that.
    exclusive_waiters: u32,
    /// When what is not synced must be.
    sync_due: Option<Instant>,
}

/// Commits, those who wait for them, and the bytes of their payloads.
#[derive(Default)]
struct GroupBuilder {
    commits: Vec<Commit>,
    replies: Vec<ReplySender<()>>,
    bytes: usize,
}

impl WriterShared {
    fn new(committer: GroupCommit, reclaim: Compaction) -> Self {
        let waiting = VecDeque::new();
        let write_state = WriteState {
            group_commit: committer,
            compaction: reclaim,
            waiting,
            exclusive_waiters: 0,
            sync_due: None,
        };
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
            // With the reply in it: the answer says that nobody writes any more.
            return;
        }
        requests.requests.push_back(request);
        drop(requests);
        self.arrived.notify_one();
    }

    fn requests(&self) -> MutexGuard<'_, RequestQueue> {
        // Nothing in here panics half-way through a change, so what a poisoned lock guards is whole.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread's life.
    fn serve(&self, thread: usize) {
        let _last_will = StopOnPanic(self);
        while self.wait() {
            // Poisoned: another thread failed in the middle of something. What is on the disk is whole; nothing follows.
            let Ok(write_state) = self.write_state.lock() else { return };
            if self.turn(write_state, thread).is_none() {
                return;
            }
        }
        // The last of the threads finds it quiet.
        if let Ok(mut write_state) = self.write_state.lock()
            && write_state.group_commit.log.is_settled()
        {
            write_state.seal();
        }
    }

    /// Waits for something to do; false when there will be no more.
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
            if requests.look_at.is_some_and(|at| at <= now) {
                requests.look_at = None;
                return true;
            }
            requests = match requests.look_at {
                Some(at) => {
                    self.arrived.wait_timeout(requests, at - now).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.arrived.wait(requests).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Serves what is waiting, then sees to the log. None if the log cannot be written any more.
    fn turn(&self, write_state: MutexGuard<'_, WriteState>, thread: usize) -> Option<()> {
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
        // With the pen: what somebody found out before must not be noted after this.
        self.requests().look_at = write_state.next_look();
        Some(())
    }

    /// The pen when everything that was written is settled. Others let it lie until then.
    fn wait_settled<'a>(
        &self,
        mut write_state: MutexGuard<'a, WriteState>,
    ) -> Option<MutexGuard<'a, WriteState>> {
        write_state.exclusive_waiters += 1;
        let mut write_state = self
            .settled
            .wait_while(write_state, |write_state| !write_state.group_commit.log.is_settled())
            .ok()?;
        write_state.exclusive_waiters -= 1;
        self.settled.notify_all();
        Some(write_state)
    }

    /// The batches at the head of the line. A claim or release must not overtake those before it, nor be overtaken.
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

    /// Writes a group, and waits for the disk without the pen.
    fn commit<'a>(
        &'a self,
        mut write_state: MutexGuard<'a, WriteState>,
        batches: GroupBuilder,
        thread: usize,
    ) -> Option<MutexGuard<'a, WriteState>> {
        let GroupBuilder { commits, replies, .. } = batches;
        let group = write_state.group_commit.encode(commits);
        if !write_state.group_commit.is_ready(&group) {
            let commits = write_state.group_commit.give_up(group);
            let mut write_state = self.wait_settled(write_state)?;
            answer(replies, write_state.group_commit.commit(commits));
            return Some(write_state);
        }
        match write_state.group_commit.write(group) {
            WriteStatus::Answered(answers) => answer(replies, answers),
            WriteStatus::TooBig(group) => {
                let commits = write_state.group_commit.give_up(group);
                write_state = self.wait_settled(write_state)?;
                answer(replies, write_state.group_commit.commit(commits));
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
    /// Answers those who wait for the oldest groups. Whoever asked may have stopped waiting; that is their right.
    fn reply(&mut self, answered: Vec<Answers>) {
        for answers in answered {
            answer(self.waiting.pop_front().unwrap_or_default(), answers);
        }
    }

    fn serve_other(&mut self, request: Request) {
        match request {
            Request::Commit(commit, reply) => answer(vec![reply], self.group_commit.commit(vec![commit])),
            Request::Claim(shards, reply) => _ = reply.send(self.group_commit.raise_epochs(&shards)),
            Request::Release(shards, reply) => {
                let released = self.group_commit.release(&shards);
                // Nothing follows a release but the end, as a rule.
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

    /// In the quiet.
    fn maintain(&mut self, committed_bytes: u64) {
        if self.is_sync_due() {
            self.sync();
        }
        self.compaction.step(&mut self.group_commit.log, committed_bytes);
    }

    fn sync(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.group_commit.log.sync() {
            // They were acknowledged as buffered: a power cut may take them, and now it is likelier.
            tracing::error!(%error, "buffered commits could not be synced, trying again; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_AGAIN_AFTER);
        }
    }

    /// In the quiet, when it is likely that nothing more is written.
    fn seal(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.group_commit.log.seal() {
            tracing::error!(%error, "the log could not be sealed; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_AGAIN_AFTER);
        }
    }

    /// When somebody has to look after the log.
    fn next_look(&mut self) -> Option<Instant> {
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

/// A thread that fails must not leave the others waiting, nor those who ask.
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

fn answer(replies: Vec<ReplySender<()>>, answers: Answers) {
    for (reply, answer) in replies.into_iter().zip(answers) {
        let _ = reply.send(answer);
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
