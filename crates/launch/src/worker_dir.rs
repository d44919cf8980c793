//! A worker's folder, and the files in it.
//!
//! ```text
//! live/<worker>/          readable to the server's user alone
//!   state.json            the ids of the shim and the worker; written before the worker starts
//!   stopping              why the worker is stopped; exists once a server has begun to stop it
//!   stage                 what the worker does before it is ready; written by workers of deployed code
//!   imports.json          what the worker has imported; written by the worker runtime after the first job
//!   exit.json             how the worker ended; exists once the shim has nothing left to do
//!   served.json           what the worker did until its end, as the server saw it; written after the exit was reported
//!   log  log.1  log.2     what the worker printed; `log.times` and so on: when
//!   cwd/                  its current folder
//!   home/                 its home folder, if it has one of its own
//! ended/<endpoint>/<worker>/   the folder after the exit was reported, without cwd and home
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longshore_model::{EndpointId, Millis, Placement, Served, StartStage, StopReason, WorkerId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cgroup::leaf::Leaf;
use crate::proc::ProcessId;

/// The note of a worker that runs: `state.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerNote {
    pub(crate) worker: WorkerId,
    pub(crate) endpoint: EndpointId,
    pub(crate) version: u32,
    /// Empty for a worker that an older version started.
    #[serde(default)]
    pub(crate) placement: Placement,
    /// The address of the server that the worker was told; `None` for a worker that an older version started.
    #[serde(default)]
    pub(crate) server_url: Option<String>,
    /// The folder of the worker's start; `None` for a worker that an older version started.
    #[serde(default)]
    pub(crate) folder: Option<FolderIdentity>,
    pub(crate) shim: ProcessId,
    /// `None` between the shim's start and the worker's start.
    pub(crate) process: Option<ProcessId>,
    /// The worker's own cgroup; `None` without one.
    #[serde(default)]
    pub(crate) cgroup: Option<PathBuf>,
}

impl WorkerNote {
    /// Why the worker was killed, if it ran out of memory; `None` otherwise, and once its cgroup is removed.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        self.cgroup.as_ref().and_then(|path| Leaf::at(path).out_of_memory())
    }

    /// Kills all processes in the worker's cgroup, and removes the cgroup.
    pub(crate) fn end_cgroup(&self) {
        let Some(leaf) = self.cgroup.as_ref().map(Leaf::at) else { return };
        if let Err(error) = leaf.end() {
            tracing::error!(worker = %self.worker, %error, "the cgroup of a worker is left over");
        }
    }
}

/// The identity of a folder: a move keeps it, and a copy has another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderIdentity {
    device: u64,
    inode: u64,
}

/// How a worker ended: `exit.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExitNote {
    /// The exit code; `None` after a signal, and if it is unknown.
    pub code: Option<i32>,
    /// The signal that ended the worker; `None` if none did, and if it is unknown.
    pub signal: Option<i32>,
    /// The uptime of the worker, in ms.
    pub ran_ms: u64,
    /// A further cause of the exit; `None` if unknown.
    #[serde(default)]
    pub because: Option<String>,
}

/// The path of a worker's folder.
#[derive(Clone, Debug)]
pub struct WorkerDir(PathBuf);

impl WorkerDir {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Creates the folder, which must not exist.
    pub(crate) fn create(&self) -> io::Result<()> {
        if let Some(parent) = self.0.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        DirBuilder::new().mode(0o700).create(&self.0)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn identity(&self) -> Option<FolderIdentity> {
        let facts = fs::metadata(&self.0).ok()?;
        Some(FolderIdentity { device: facts.dev(), inode: facts.ino() })
    }

    /// Whether the worker of this note was started in this folder. False in a copy of the folder.
    pub(crate) fn is_of(&self, state: &WorkerNote) -> bool {
        state.folder.is_none() || state.folder == self.identity()
    }

    /// The path of the log.
    pub fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.0.join("cwd")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// `None` if the note was not written, or is damaged.
    pub(crate) fn state(&self) -> Option<WorkerNote> {
        read(&self.0.join("state.json"))
    }

    pub(crate) fn write_state(&self, state: &WorkerNote) -> io::Result<()> {
        write(&self.0.join("state.json"), state)
    }

    /// `None` while the worker runs, or if its shim was killed.
    pub(crate) fn exit(&self) -> Option<ExitNote> {
        read(&self.0.join("exit.json"))
    }

    /// Whether the shim has noted the worker's end.
    pub(crate) fn has_exit(&self) -> bool {
        self.0.join("exit.json").exists()
    }

    /// When the worker ended: the time of the note of its exit, or else of the folder's last change; `None` if unknown.
    pub(crate) fn ended_at(&self) -> Option<Millis> {
        let facts = fs::metadata(self.0.join("exit.json")).or_else(|_| fs::metadata(&self.0)).ok()?;
        let since_epoch = facts.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Millis(since_epoch.as_millis() as u64))
    }

    /// Notes how the worker ended.
    ///
    /// # Errors
    ///
    /// The note could not be written.
    pub fn write_exit(&self, exit: &ExitNote) -> io::Result<()> {
        write(&self.0.join("exit.json"), exit)
    }

    /// Whether a server has begun to stop the worker.
    pub fn is_stopping(&self) -> bool {
        self.0.join("stopping").exists()
    }

    /// Notes that the worker is being stopped, and why. An earlier note stays as it is. A failure is ignored: only the
    /// next server needs the note.
    pub fn note_stopping(&self, reason: &StopReason) {
        if let Ok(mut note) = File::create_new(self.0.join("stopping")) {
            let _ = write!(note, "{reason}");
        }
    }

    /// Why a server has begun to stop the worker; `None` if none has, and if the reason is unknown.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        fs::read_to_string(self.0.join("stopping")).ok().filter(|reason| !reason.is_empty())
    }

    /// Notes what the worker did until its end.
    ///
    /// # Errors
    ///
    /// The note could not be written.
    pub(crate) fn write_served(&self, served: &Served) -> io::Result<()> {
        write(&self.0.join("served.json"), served)
    }

    /// What the worker did until its end; `None` if that was not noted.
    pub(crate) fn served(&self) -> Option<Served> {
        read(&self.0.join("served.json"))
    }

    /// The file in which the worker says what it does before it is ready.
    pub(crate) fn stage_file(&self) -> PathBuf {
        self.0.join("stage")
    }

    /// The file in which the worker notes what it has imported.
    pub(crate) fn imports(&self) -> PathBuf {
        self.0.join("imports.json")
    }

    /// What the worker said last that it does; `None` if it said nothing.
    pub(crate) fn stage(&self) -> Option<StartStage> {
        StartStage::parse(fs::read_to_string(self.stage_file()).ok()?.trim_end())
    }

    /// What the note of any launcher says about the worker; `None` if it was not written, or is damaged.
    pub(crate) fn facts<T: DeserializeOwned>(&self) -> Option<T> {
        read(&self.0.join("state.json"))
    }

    pub(crate) fn write_facts<T: Serialize>(&self, facts: &T) -> io::Result<()> {
        write(&self.0.join("state.json"), facts)
    }

    /// Removes the folder with its contents. A folder that cannot be removed stays until the next start of the server.
    pub fn remove_quietly(&self) {
        let _ = self.remove();
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.0)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Replaces the file by a rename, so that a reader sees a complete file. The file need not survive a power cut, as no
/// worker does.
fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    fs::rename(beside, path)
}
