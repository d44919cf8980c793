//! The writer thread: takes what is waiting, commits it as one group, answers.
//!
//! While one group syncs, the next one fills in the channel; so the slower the disk, the bigger the groups.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use longshore_model::{Epoch, ShardId};
use tokio::sync::oneshot;

use super::committer::{Commit, Committer};
use super::folder::Folder;
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

/// The thread's handle: dropping it writes what is waiting, and gives the folder back.
#[derive(Debug)]
pub(super) struct Writer {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread on an open folder.
    pub fn start(folder: Folder, committer: Committer, reclaim: Reclaim) -> Result<Self, StoreError> {
        let (sender, requests) = channel();
        let mut run = Run { committer, reclaim, requests, next: None, sync_due: None };
        let body = move || {
            run.until_closed();
            // Only now may another server have the folder.
            drop(folder);
        };
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(body)
            .map_err(|error| StoreError::Io(format!("cannot start a thread: {error}")))?;
        Ok(Self { requests: Some(sender), thread: Some(thread) })
    }

    /// Hands a request over and waits for its answer. The request is on its way when this returns, whether or not
    /// the answer is waited for.
    pub fn ask<T, F>(&self, request: F) -> impl Future<Output = Result<T, StoreError>> + use<T, F>
    where
        F: FnOnce(Reply<T>) -> Request,
    {
        let (reply, answer) = oneshot::channel();
        if let Some(requests) = &self.requests {
            // A writer that is gone has dropped the channel, and with it the reply: the answer says so.
            let _ = requests.send(request(reply));
        }
        async move {
            answer.await.unwrap_or_else(|_| {
                Err(StoreError::Io("the thread that writes has stopped; restart the server".into()))
            })
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

struct Run {
    committer: Committer,
    reclaim: Reclaim,
    requests: Receiver<Request>,
    /// Taken from the channel, but not part of the present group.
    next: Option<Request>,
    /// When what is not synced must be.
    sync_due: Option<Instant>,
}

impl Run {
    fn until_closed(&mut self) {
        // Whether space is to be given back while nobody asks for anything.
        let mut tidying = false;
        loop {
            let mut committed_bytes = 0;
            match self.receive(tidying) {
                Ok(request) => committed_bytes = self.serve(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            tidying = self.reclaim.step(&mut self.committer.log, committed_bytes);
            self.sync_if_due();
        }
        if self.committer.log.is_unsynced() {
            self.sync();
        }
    }

    fn receive(&mut self, tidying: bool) -> Result<Request, RecvTimeoutError> {
        if let Some(request) = self.next.take() {
            return Ok(request);
        }
        if tidying {
            return self.requests.recv_timeout(Duration::ZERO);
        }
        match self.sync_due {
            Some(due) => self.requests.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => self.requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Answers about how many bytes were committed.
    fn serve(&mut self, request: Request) -> u64 {
        // Whoever asked may have stopped waiting; that is their right.
        match request {
            Request::Commit(commit, reply) => return self.commit_group(commit, reply),
            Request::Claim(shards, reply) => {
                let _ = reply.send(self.committer.raise_epochs(&shards));
            }
            Request::Release(shards, reply) => {
                let _ = reply.send(self.committer.release(&shards));
            }
        }
        0
    }

    fn commit_group(&mut self, first: Commit, reply: Reply<()>) -> u64 {
        let mut bytes = size_of_payloads(&first);
        let (mut group, mut replies) = (vec![first], vec![reply]);
        while group.len() < GROUP_BATCHES_MAX && bytes < GROUP_BYTES_MAX {
            match self.requests.try_recv() {
                Ok(Request::Commit(commit, reply)) => {
                    bytes += size_of_payloads(&commit);
                    group.push(commit);
                    replies.push(reply);
                }
                // A claim or release must not overtake the commits before it, nor be overtaken.
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let answers = self.committer.commit(&group);
        for (reply, answer) in replies.into_iter().zip(answers) {
            let _ = reply.send(answer);
        }
        bytes as u64
    }

    fn sync_if_due(&mut self) {
        if !self.committer.log.is_unsynced() {
            self.sync_due = None;
            return;
        }
        let due = *self.sync_due.get_or_insert_with(|| Instant::now() + SYNC_AFTER);
        if due <= Instant::now() {
            self.sync();
        }
    }

    fn sync(&mut self) {
        self.sync_due = None;
        if let Err(error) = self.committer.log.sync() {
            // They were acknowledged as buffered: a power cut may take them, and now it is likelier.
            tracing::error!(%error, "buffered commits could not be synced, trying again; check the disk");
            self.sync_due = Some(Instant::now() + SYNC_AGAIN_AFTER);
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
