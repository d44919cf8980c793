//! The writer: takes what is waiting, writes it as one group, answers.

use std::future::Future;
use std::sync::Arc;

use longshore_store::{CommitChains, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::rows::{Change, ClaimReply, Rows};
use crate::disk::{Drive, WriteError};
use crate::faults::Fault;
use crate::observation::Observation;
use crate::scheduler::Process;

/// A group is cut here.
const GROUP_CHANGES_MAX: usize = 1_024;

/// Hands changes to the writer's task, which lives and dies with its process.
pub(super) struct Writer {
    requests: mpsc::UnboundedSender<WriteRequest>,
}

struct WriteRequest {
    change: Change,
    reply: oneshot::Sender<ClaimReply>,
}

impl Writer {
    pub(super) fn start(process: &Process, drive: Arc<Drive>, rows: Arc<Rows>) -> Self {
        let (requests, mut waiting) = mpsc::unbounded_channel();
        process.spawn(async move {
            let (mut group, mut chains) = (Vec::new(), CommitChains::default());
            while waiting.recv_many(&mut group, GROUP_CHANGES_MAX).await > 0 {
                let group = admit(&chains, std::mem::take(&mut group));
                if !group.is_empty() {
                    write(&drive, &rows, &mut chains, group).await;
                }
            }
        });
        Self { requests }
    }

    /// Hands a change over and waits for its answer. It is on its way when this returns, whether or not the
    /// answer is waited for.
    pub(super) fn ask(&self, change: Change) -> impl Future<Output = ClaimReply> + use<> {
        let (reply, answer) = oneshot::channel();
        // Without a writer the reply is dropped, and the answer says so.
        let _ = self.requests.send(WriteRequest { change, reply });
        async move { answer.await.unwrap_or_else(|_| Err(StoreError::Io("the writer is gone".to_owned()))) }
    }
}

/// Refuses what rests on a group that failed.
fn admit(chains: &CommitChains, group: Vec<WriteRequest>) -> Vec<WriteRequest> {
    let mut admitted = Vec::new();
    for request in group {
        match request.change.chain().and_then(|(shard, chain)| chains.check(shard, chain).err()) {
            Some(error) => _ = request.reply.send(Err(error)),
            None => admitted.push(request),
        }
    }
    admitted
}

async fn write(drive: &Drive, rows: &Rows, chains: &mut CommitChains, group: Vec<WriteRequest>) {
    let (changes, replies): (Vec<_>, Vec<_>) =
        group.into_iter().map(|WriteRequest { change, reply }| (change, reply)).unzip();
    let senders: Vec<_> = changes.iter().map(Change::chain).collect();
    let is_synced = changes.iter().any(Change::is_synced);
    rows.begin(changes);
    let answers = match drive.write(Fault::CommitFailed).await {
        Ok(()) => {
            if is_synced {
                drive.sync().await;
            }
            // A sync that fails leaves in doubt what is on the disk: the group stays where it is.
            if is_synced && drive.faults.inject(Fault::CommitUnsure) { None } else { Some(rows.keep()) }
        }
        Err(error) => {
            rows.forget();
            drive.record.see(&Observation::DiskFailed);
            let error = match error {
                WriteError::Full => StoreError::Full("no space left on the simulated disk".to_owned()),
                WriteError::Failed => StoreError::Io("the simulated disk failed".to_owned()),
            };
            Some(replies.iter().map(|_| Err(error.clone())).collect())
        }
    };
    if answers.is_none() {
        drive.record.see(&Observation::DiskFailed);
    }
    let unsure = || Err(StoreError::Io("the simulated disk could not sync".to_owned()));
    let answers = answers.unwrap_or_else(|| replies.iter().map(|_| unsure()).collect());
    for ((reply, sender), answer) in replies.into_iter().zip(senders).zip(answers) {
        if let (Err(error), Some((shard, chain))) = (&answer, sender) {
            chains.fail(shard, chain, error);
        }
        // Whoever asked may have stopped waiting; that is their right.
        let _ = reply.send(answer);
    }
}
