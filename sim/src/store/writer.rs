//! The writer: takes waiting changes, writes them as one group, and replies.

use std::future::Future;
use std::sync::Arc;

use longshore_store::{CommitChains, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::rows::{Change, ClaimReply, Rows};
use crate::disk::{Drive, WriteError};
use crate::faults::Fault;
use crate::observation::Observation;
use crate::scheduler::Process;

/// Most changes of one group.
const GROUP_CHANGES_MAX: usize = 1_024;

/// Passes changes to the writer's task, which lives as long as its process.
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

    /// Sends a change and waits for its result. The change is in flight when this returns, even if the future is
    /// dropped.
    pub(super) fn ask(&self, change: Change) -> impl Future<Output = ClaimReply> + use<> {
        let (reply, answer) = oneshot::channel();
        // Without a writer the reply is dropped, which becomes an error.
        let _ = self.requests.send(WriteRequest { change, reply });
        async move { answer.await.unwrap_or_else(|_| Err(StoreError::Io("the writer is gone".to_owned()))) }
    }
}

/// Rejects changes that depend on a failed group.
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
            // After a failed sync the contents of the disk are unknown, so the group stays.
            if is_synced && drive.faults.inject(Fault::CommitUnsure) { None } else { Some(rows.keep()) }
        }
        Err(error) => {
            rows.forget();
            drive.record.observe(&Observation::DiskFailed);
            let error = match error {
                WriteError::Full => StoreError::Full("no space left on the simulated disk".to_owned()),
                WriteError::Failed => StoreError::Io("the simulated disk failed".to_owned()),
            };
            Some(replies.iter().map(|_| Err(error.clone())).collect())
        }
    };
    if answers.is_none() {
        drive.record.observe(&Observation::DiskFailed);
    }
    let unsure = || Err(StoreError::Io("the simulated disk could not sync".to_owned()));
    let answers = answers.unwrap_or_else(|| replies.iter().map(|_| unsure()).collect());
    for ((reply, sender), answer) in replies.into_iter().zip(senders).zip(answers) {
        if let (Err(error), Some((shard, chain))) = (&answer, sender) {
            chains.fail(shard, chain, error);
        }
        // The caller may have stopped waiting, so a closed channel is no error.
        let _ = reply.send(answer);
    }
}
