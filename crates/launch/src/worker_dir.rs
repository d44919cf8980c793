//! A worker's folder, and the files in it.
//!
//! ```text
//! live/<worker>/          readable to the server's user alone
//!   state.json            the ids of the shim and the worker; written before the worker starts
//!   stopping              exists once a server has begun to stop the worker
//!   exit.json             how the worker ended; exists once the shim has nothing left to do
//!   log  log.1  log.2     what the worker printed
//!   cwd/                  its current folder
//!   home/                 its home folder, if it has one of its own
//! ended/<endpoint>/<worker>/   the folder after the exit was reported, without cwd and home
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use longshore_model::{EndpointId, Placement, WorkerId};
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
pub(crate) struct ExitNote {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) ran_ms: u64,
    /// A further cause of the exit; `None` if unknown.
    #[serde(default)]
    pub(crate) because: Option<String>,
}

/// The path of a worker's folder.
#[derive(Clone, Debug)]
pub(crate) struct WorkerDir(PathBuf);

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

    pub(crate) fn path(&self) -> &Path {
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

    pub(crate) fn log(&self) -> PathBuf {
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

    pub(crate) fn write_exit(&self, exit: &ExitNote) -> io::Result<()> {
        write(&self.0.join("exit.json"), exit)
    }

    /// Whether a server has begun to stop the worker.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.join("stopping").exists()
    }

    /// Notes that the worker is being stopped. A failure is ignored: only the next server needs the note.
    pub(crate) fn note_stopping(&self) {
        let _ = File::create(self.0.join("stopping"));
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
