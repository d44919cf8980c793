//! A worker's folder: which files are in it, and what is in them.
//!
//! ```text
//! live/<worker>/          readable to the server's user alone
//!   state.json            who the shim and the worker are; written before the worker starts
//!   stopping              there once a server began to end the worker
//!   exit.json             how the worker ended; there once the shim has nothing left to do
//!   log  log.1  log.2     what the worker printed
//!   cwd/                  where it runs
//!   home/                 its home folder, if it has one of its own
//! ended/<endpoint>/<worker>/   the same folder after its end was reported, without cwd and home
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

/// Who runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerNote {
    pub(crate) worker: WorkerId,
    pub(crate) endpoint: EndpointId,
    pub(crate) version: u32,
    /// Unknown of a worker that an older program started.
    #[serde(default)]
    pub(crate) placement: Placement,
    /// The folder that this was written into; unknown of a worker that an older program started.
    #[serde(default)]
    pub(crate) folder: Option<FolderIdentity>,
    pub(crate) shim: ProcessId,
    /// None for the moment between the shim's start and the worker's.
    pub(crate) process: Option<ProcessId>,
    /// The worker's cgroup, where it has one of its own.
    #[serde(default)]
    pub(crate) cgroup: Option<PathBuf>,
}

impl WorkerNote {
    /// Whether the worker was killed for want of memory, as long as its cgroup is there.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        self.cgroup.as_ref().and_then(|path| Leaf::at(path).out_of_memory())
    }

    /// Ends all that is left in the worker's cgroup, and removes the cgroup.
    pub(crate) fn end_cgroup(&self) {
        let Some(leaf) = self.cgroup.as_ref().map(Leaf::at) else { return };
        if let Err(error) = leaf.end() {
            tracing::error!(worker = %self.worker, %error, "the cgroup of a worker is left over");
        }
    }
}

/// A folder, wherever it is moved; a copy of it is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderIdentity {
    device: u64,
    inode: u64,
}

/// How a worker ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ExitNote {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) ran_ms: u64,
    /// What is known of why.
    #[serde(default)]
    pub(crate) because: Option<String>,
}

/// A worker's folder.
#[derive(Clone, Debug)]
pub(crate) struct WorkerDir(PathBuf);

impl WorkerDir {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Makes the folder; it must not exist.
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

    /// Whether the worker that wrote this state was started in this folder, and not in one that this is a copy of.
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

    /// None where it was not written, or is damaged.
    pub(crate) fn state(&self) -> Option<WorkerNote> {
        read(&self.0.join("state.json"))
    }

    pub(crate) fn write_state(&self, state: &WorkerNote) -> io::Result<()> {
        write(&self.0.join("state.json"), state)
    }

    /// None while it runs, or if its shim was killed.
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

    /// Whether somebody began to end the worker.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.join("stopping").exists()
    }

    /// Without the note, only the next server would not know; nothing to fail for.
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

/// Whoever reads finds all of it or nothing. It need not survive a power cut: no worker does.
fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    fs::rename(beside, path)
}
