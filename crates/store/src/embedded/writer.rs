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

use super::committer::{Answers, Commit, Committer, Outcome};
use super::folder::Folder;
use super::head::SYNCS_MAX;
use super::log::Ticket;
use super::reclaim::Reclaim;
use crate::{Payload, StoreError, Write};

/// A group is cut here, so that one big burst does not make everybody wait for all of it.
const GROUP_BATCHES_MAX: usize = 1_024;
/// See [`GROUP_BATCHES_MAX`].
const GROUP_BYTES_MAX: usize = 8 << 20;
/// Buffered commits promise to be synced within 100 ms; the sync itself takes time too.
const SYNC_AFTER: Duration = Duration::from_millis(70);

/// After a sync that failed.
const SYNC_AGAIN_AFTER: Duration = Duration::from_secs(1);

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer can be asked.
#[derive(Debug)]
pub(super) enum Request {
    /// Write a batch.
    Commit(Commit, Reply<()>),
    /// Take shards over.
    Claim(Vec<ShardId>, Reply<Vec<Epoch>>),
    /// Let shards go.
    Release(Vec<(ShardId, Epoch)>, Reply<()>),
}

/// The threads' handle: dropping it writes what is waiting, and gives the folder back.
#[derive(Debug)]
pub(super) struct Writer {
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
    // Dropped last: only then may another server have it.
    _folder: Folder,
}

impl Writer {
    /// Starts the threads on an open folder.
    pub fn start(folder: Folder, committer: Committer, reclaim: Reclaim) -> Result<Self, StoreError> {
        let desk = Arc::new(Desk::new(committer, reclaim));
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
        F: FnOnce(Reply<T>) -> Request,
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

impl Drop for Writer {
    fn drop(&mut self) {
        self.desk.inbox().is_closed = true;
        self.desk.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // A panic in there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// What the threads share. A request is taken from the inbox only by who has the pen.
#[derive(Debug)]
struct Desk {
    inbox: Mutex<Inbox>,
    /// Something is in the inbox.
    arrived: Condvar,
    pen: Mutex<Pen>,
    /// The log is quiet, or somebody who waited for that is done.
    quieter: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    requests: VecDeque<Request>,
    /// When to look after the log, although nobody asks for anything.
    look_at: Option<Instant>,
    is_closed: bool,
}

/// The right to write.
#[derive(Debug)]
struct Pen {
    committer: Committer,
    reclaim: Reclaim,
    /// Those who wait for groups that are written, the oldest first.
    waiting: VecDeque<Vec<Reply<()>>>,
    /// So many wait until everything is settled: nobody else writes before that.
    reserved: u32,
    /// When what is not synced must be.
    sync_due: Option<Instant>,
}

/// Commits, those who wait for them, and the bytes of their payloads.
#[derive(Default)]
struct Batches {
    commits: Vec<Commit>,
    replies: Vec<Reply<()>>,
    bytes: usize,
}

impl Desk {
    fn new(committer: Committer, reclaim: Reclaim) -> Self {
        let waiting = VecDeque::new();
        let pen = Pen { committer, reclaim, waiting, reserved: 0, sync_due: None };
        Self {
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            pen: Mutex::new(pen),
            quieter: Condvar::new(),
        }
    }

    fn put(&self, request: Request) {
        let mut inbox = self.inbox();
        if inbox.is_closed {
            // With the reply in it: the answer says that nobody writes any more.
            return;
        }
        inbox.requests.push_back(request);
        drop(inbox);
        self.arrived.notify_one();
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        // Nothing in here panics half-way through a change, so what a poisoned lock guards is whole.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread's life.
    fn serve(&self, thread: usize) {
        let _last_will = StopIfPanicking(self);
        while self.wait() {
            // Poisoned: another thread failed in the middle of something. What is on the disk is whole; nothing follows.
            let Ok(pen) = self.pen.lock() else { return };
            if self.turn(pen, thread).is_none() {
                return;
            }
        }
        // The last of the threads finds it quiet.
        if let Ok(mut pen) = self.pen.lock()
            && pen.committer.log.is_quiet()
        {
            pen.seal();
        }
    }

    /// Waits for something to do; false when there will be no more.
    fn wait(&self) -> bool {
        let mut inbox = self.inbox();
        loop {
            let now = Instant::now();
            if !inbox.requests.is_empty() {
                return true;
            }
            if inbox.is_closed {
                return false;
            }
            if inbox.look_at.is_some_and(|at| at <= now) {
                inbox.look_at = None;
                return true;
            }
            inbox = match inbox.look_at {
                Some(at) => {
                    self.arrived.wait_timeout(inbox, at - now).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Serves what is waiting, then sees to the log. None if the log cannot be written any more.
    fn turn(&self, pen: MutexGuard<'_, Pen>, thread: usize) -> Option<()> {
        let mut pen = self.quieter.wait_while(pen, |pen| pen.reserved > 0).ok()?;
        let mut committed_bytes = 0;
        let batches = self.take_batches();
        if batches.commits.is_empty() {
            if let Some(request) = self.take_other() {
                pen = self.quiet(pen)?;
                pen.serve_other(request);
            }
        } else {
            committed_bytes = batches.bytes as u64;
            pen = self.commit(pen, batches, thread)?;
        }
        if pen.has_chores() {
            pen = self.quiet(pen)?;
            pen.do_chores(committed_bytes);
        }
        pen.committer.log.note_end();
        // With the pen: what somebody found out before must not be noted after this.
        self.inbox().look_at = pen.next_look();
        Some(())
    }

    /// The pen when everything that was written is settled. Others let it lie until then.
    fn quiet<'a>(&self, mut pen: MutexGuard<'a, Pen>) -> Option<MutexGuard<'a, Pen>> {
        pen.reserved += 1;
        let mut pen = self.quieter.wait_while(pen, |pen| !pen.committer.log.is_quiet()).ok()?;
        pen.reserved -= 1;
        self.quieter.notify_all();
        Some(pen)
    }

    /// The batches at the head of the line. A claim or release must not overtake those before it, nor be overtaken.
    fn take_batches(&self) -> Batches {
        let mut batches = Batches::default();
        let mut inbox = self.inbox();
        while batches.commits.len() < GROUP_BATCHES_MAX
            && batches.bytes < GROUP_BYTES_MAX
            && let Some(Request::Commit(commit, reply)) =
                inbox.requests.pop_front_if(|request| matches!(request, Request::Commit(..)))
        {
            batches.bytes += size_of_payloads(&commit);
            batches.commits.push(commit);
            batches.replies.push(reply);
        }
        batches
    }

    fn take_other(&self) -> Option<Request> {
        self.inbox().requests.pop_front_if(|request| !matches!(request, Request::Commit(..)))
    }

    /// Writes a group, and waits for the disk without the pen.
    fn commit<'a>(
        &'a self,
        mut pen: MutexGuard<'a, Pen>,
        batches: Batches,
        thread: usize,
    ) -> Option<MutexGuard<'a, Pen>> {
        let Batches { commits, replies, .. } = batches;
        let group = pen.committer.encode(commits);
        if !pen.committer.is_ready(&group) {
            let commits = pen.committer.give_up(group);
            let mut pen = self.quiet(pen)?;
            answer(replies, pen.committer.commit(commits));
            return Some(pen);
        }
        match pen.committer.write(group) {
            Outcome::Answered(answers) => answer(replies, answers),
            Outcome::TooBig(group) => {
                let commits = pen.committer.give_up(group);
                pen = self.quiet(pen)?;
                answer(replies, pen.committer.commit(commits));
            }
            Outcome::OnItsWay => {
                pen.waiting.push_back(replies);
                if let Some(ticket) = pen.committer.ticket(thread) {
                    return self.sync(pen, ticket);
                }
                let answered = pen.committer.settle_buffered();
                pen.reply(answered);
            }
        }
        Some(pen)
    }

    fn sync<'a>(&'a self, pen: MutexGuard<'a, Pen>, ticket: Ticket) -> Option<MutexGuard<'a, Pen>> {
        drop(pen);
        let synced = ticket.sync();
        let mut pen = self.pen.lock().ok()?;
        let answered = pen.committer.settle(ticket, synced);
        pen.reply(answered);
        if pen.reserved > 0 && pen.committer.log.is_quiet() {
            self.quieter.notify_all();
        }
        Some(pen)
    }
}

impl Pen {
    /// Answers those who wait for the oldest groups. Whoever asked may have stopped waiting; that is their right.
    fn reply(&mut self, answered: Vec<Answers>) {
        for answers in answered {
            answer(self.waiting.pop_front().unwrap_or_default(), answers);
        }
    }

    fn serve_other(&mut self, request: Request) {
        match request {
            Request::Commit(commit, reply) => answer(vec![reply], self.committer.commit(vec![commit])),
            Request::Claim(shards, reply) => _ = reply.send(self.committer.raise_epochs(&shards)),
            Request::Release(shards, reply) => {
                let released = self.committer.release(&shards);
                // Nothing follows a release but the end, as a rule.
                self.seal();
                let _ = reply.send(released);
            }
        }
    }

    fn has_chores(&self) -> bool {
        self.is_sync_due() || self.reclaim.is_due(&self.committer.log)
    }

    fn is_sync_due(&self) -> bool {
        let log = &self.committer.log;
        log.is_overdue() || log.is_unsynced() && self.sync_due.is_some_and(|due| due <= Instant::now())
    }

    /// In the quiet.
    fn do_chores(&mut self, committed_bytes: u64) {
        if self.is_sync_due() {
            self.sync();
        }
        self.reclaim.step(&mut self.committer.log, committed_bytes);
    }

    fn sync(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.committer.log.sync() {
            // They were acknowledged as buffered: a power cut may take them, and now it is likelier.
            tracing::error!(%error, "buffered commits could not be synced, trying again; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_AGAIN_AFTER);
        }
    }

    /// In the quiet, when it is likely that nothing more is written.
    fn seal(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.committer.log.seal() {
            tracing::error!(%error, "the log could not be sealed; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_AGAIN_AFTER);
        }
    }

    /// When somebody has to look after the log.
    fn next_look(&mut self) -> Option<Instant> {
        if self.reclaim.is_due(&self.committer.log) {
            return Some(Instant::now());
        }
        if !self.committer.log.is_unsynced() {
            self.sync_due = None;
            return None;
        }
        Some(*self.sync_due.get_or_insert_with(|| Instant::now() + SYNC_AFTER))
    }
}

/// A thread that fails must not leave the others waiting, nor those who ask.
struct StopIfPanicking<'a>(&'a Desk);

impl Drop for StopIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut inbox = self.0.inbox();
            inbox.is_closed = true;
            inbox.requests.clear();
            drop(inbox);
            self.0.pen.lock().unwrap_or_else(PoisonError::into_inner).waiting.clear();
            self.0.arrived.notify_all();
            self.0.quieter.notify_all();
        }
    }
}

fn answer(replies: Vec<Reply<()>>, answers: Answers) {
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
