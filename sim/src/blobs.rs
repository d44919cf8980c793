//! Payload files on a simulated disk, with exactly the guarantees of the blob directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longshore_blobs::{BlobError, BlobFuture, Blobs, MemoryBlobs};
use tokio::sync::oneshot;

use crate::disk::{Drive, WriteError};
use crate::faults::Fault;
use crate::observation::Observation;
use crate::scheduler::Process;
use crate::store::Rows;

/// Recent deletions that a power cut can undo; older ones are on the disk.
const UNSYNCED_DELETES_MAX: usize = 64;

/// The files on the disk.
#[derive(Default)]
pub(crate) struct BlobFiles {
    present: MemoryBlobs,
    state: Mutex<BlobState>,
}

#[derive(Default)]
struct BlobState {
    last_put: u64,
    /// Files being written, by the number of the put.
    unfinished: BTreeMap<u64, (String, Bytes)>,
    /// Recently deleted files, oldest first.
    deleted: Vec<(String, Bytes)>,
    /// Names of damaged or lost files with outputs.
    damaged: BTreeSet<String>,
}

impl BlobFiles {
    /// Keeps what survives the death of the process.
    pub(crate) fn crash(&self, drive: &Drive, power_cut: bool) {
        let (unfinished, deleted) = {
            let mut state = self.state();
            (std::mem::take(&mut state.unfinished), std::mem::take(&mut state.deleted))
        };
        for (name, bytes) in unfinished.into_values() {
            if drive.toss() {
                // A put into the memory store is ready at its first poll.
                drop(self.present.put(&name, bytes));
            }
        }
        if power_cut && drive.faults.inject(Fault::TailLost) {
            for (name, bytes) in deleted {
                if drive.toss() {
                    drive.record.note(|| format!("the deletion of {name} is undone"));
                    drop(self.present.put(&name, bytes));
                }
            }
        }
    }

    /// May damage or lose the file with a job's input.
    async fn may_damage(&self, drive: &Drive, name: &str) -> Result<(), BlobError> {
        let Some(job) = job_of_input(name) else { return Ok(()) };
        if !drive.faults.inject(Fault::InputDamaged) {
            return Ok(());
        }
        let Some(bytes) = self.present.get(name).await? else { return Ok(()) };
        drive.record.observe(&Observation::InputDamaged(job.to_owned()));
        self.damage(drive, name, bytes).await
    }

    /// May damage or lose a file with an output. The output of a terminal job is recorded as damaged for good.
    async fn may_damage_output(&self, drive: &Drive, rows: &Rows, name: &str) -> Result<(), BlobError> {
        let Some(row) = rows.with_output(name) else { return Ok(()) };
        let is_damaged = self.state().damaged.contains(name);
        if !is_damaged {
            let Some(bytes) = self.present.get(name).await? else { return Ok(()) };
            if !drive.faults.inject(Fault::OutputDamaged) {
                return Ok(());
            }
            drive.record.note(|| format!("{name} is damaged"));
            self.state().damaged.insert(name.to_owned());
            self.damage(drive, name, bytes).await?;
        }
        if row.state.is_terminal() {
            drive.record.observe(&Observation::OutputDamaged(row.id.to_string()));
        }
        Ok(())
    }

    async fn damage(&self, drive: &Drive, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        if bytes.is_empty() || drive.toss() {
            return self.present.delete(name).await;
        }
        let mut bytes = bytes.to_vec();
        let at = drive.below(bytes.len());
        bytes[at] ^= 1 << drive.below(8);
        self.present.put(name, bytes.into()).await
    }

    fn begin(&self, name: &str, bytes: &Bytes) -> u64 {
        let mut state = self.state();
        state.last_put += 1;
        let number = state.last_put;
        state.unfinished.insert(number, (name.to_owned(), bytes.clone()));
        number
    }

    async fn put(&self, drive: &Drive, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        // Reading rejects invalid names.
        self.present.get(name).await?;
        let number = self.begin(name, &bytes);
        let written = drive.write(Fault::BlobFailed).await;
        if written.is_ok() {
            drive.sync().await;
        }
        self.state().unfinished.remove(&number);
        // If the last of several steps fails, the file may have its name already.
        if written.is_ok() || (written == Err(WriteError::Failed) && drive.toss()) {
            self.present.put(name, bytes).await?;
            self.state().deleted.retain(|(deleted, _)| deleted != name);
        }
        written.map_err(|error| match error {
            WriteError::Full => BlobError::Full(format!("{name}: no space left")),
            WriteError::Failed => BlobError::Io(format!("{name}: the simulated disk failed")),
        })
    }

    async fn delete(&self, drive: &Drive, name: &str) -> Result<(), BlobError> {
        // Deleting needs no space, so a full disk does not matter.
        if drive.write(Fault::BlobFailed).await == Err(WriteError::Failed) {
            return Err(BlobError::Io(format!("{name}: the simulated disk failed")));
        }
        let bytes = self.present.get(name).await?;
        self.present.delete(name).await?;
        let mut state = self.state();
        state.damaged.remove(name);
        state.deleted.extend(bytes.map(|bytes| (name.to_owned(), bytes)));
        let synced = state.deleted.len().saturating_sub(UNSYNCED_DELETES_MAX);
        state.deleted.drain(..synced);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, BlobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the job whose input is in the file of this name.
fn job_of_input(name: &str) -> Option<&str> {
    let (_, file) = name.split_once('/')?;
    file.split_once(".input").map(|(job, _)| job)
}

/// The payload files as one server process sees them.
pub struct SimBlobs {
    process: Process,
    drive: Arc<Drive>,
    files: Arc<BlobFiles>,
    /// Rows, from which the owner of a file is found.
    rows: Arc<Rows>,
}

impl SimBlobs {
    pub(crate) fn open(process: Process, drive: Arc<Drive>, files: Arc<BlobFiles>, rows: Arc<Rows>) -> Self {
        Self { process, drive, files, rows }
    }

    /// Runs work that continues after its caller stops waiting, but ends with its process.
    fn work<W>(&self, work: impl FnOnce(Arc<Drive>, Arc<BlobFiles>) -> W) -> BlobFuture<'_, ()>
    where
        W: Future<Output = Result<(), BlobError>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.drive), Arc::clone(&self.files));
        let (reply, result) = oneshot::channel();
        let task = async move {
            // The caller may have stopped waiting, so a closed channel is no error.
            let _ = reply.send(work.await);
        };
        Box::pin(async move {
            self.process.spawn(task);
            result.await.unwrap_or_else(|_| Err(BlobError::Io("the process has ended".to_owned())))
        })
    }

    fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&MemoryBlobs) -> BlobFuture<'_, T> + Send + 'static,
    ) -> BlobFuture<'_, T> {
        Box::pin(async move {
            if !self.drive.read().await {
                return Err(BlobError::Io("the simulated disk could not be read".to_owned()));
            }
            look(&self.files.present).await
        })
    }
}

impl Blobs for SimBlobs {
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()> {
        let name = name.to_owned();
        self.work(|drive, files| async move { files.put(&drive, &name, bytes).await })
    }

    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>> {
        let name = name.to_owned();
        Box::pin(async move {
            self.files.may_damage(&self.drive, &name).await?;
            self.files.may_damage_output(&self.drive, &self.rows, &name).await?;
            let read = self.read({
                let name = name.clone();
                move |present| present.get(&name)
            });
            let bytes = read.await;
            if let (Err(_), Some(job)) = (&bytes, job_of_input(&name)) {
                self.drive.record.observe(&Observation::InputUnread(job.to_owned()));
            }
            bytes
        })
    }

    fn delete(&self, name: &str) -> BlobFuture<'_, ()> {
        let name = name.to_owned();
        self.work(|drive, files| async move { files.delete(&drive, &name).await })
    }

    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>> {
        let folder = folder.to_owned();
        self.read(move |present| present.list(&folder))
    }

    fn folders(&self) -> BlobFuture<'_, Vec<String>> {
        self.read(|present| present.folders())
    }
}
