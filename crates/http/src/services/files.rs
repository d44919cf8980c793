//! What the server keeps in files of its own, as far as callers of the API can reach it: what workers print, and code
//! that was deployed. This crate knows the questions; whoever puts the server together knows the folders.

use std::path::PathBuf;

use bytes::Bytes;
use longshore_model::{CodeHash, EndpointId, Millis, WorkerId};

/// The file that a worker's output goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// When it is full it is renamed and a new one begun.
    pub path: PathBuf,
    /// Whether the worker still lives: only then more comes.
    pub live: bool,
}

/// One deployed state of a folder with a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeVersion {
    /// What was deployed under one name are versions of the same.
    pub name: String,
    /// The SHA-256 of its archive.
    pub hash: CodeHash,
    /// How many files it has.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// When it came.
    pub created_at: Millis,
}

/// Whether a template runs the code with this hash.
pub type IsUsed = Box<dyn Fn(&CodeHash) -> bool + Send>;

/// Code was not kept.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// What was sent cannot be used: says what is wrong with it.
    #[error("{0}")]
    Unusable(String),
    /// This server keeps no code, or cannot at the moment.
    #[error("{0}")]
    Unavailable(String),
}

/// See the module. The methods block, unless they say otherwise.
pub trait FileService: Send + Sync {
    /// The log of a worker of this endpoint, also for a while after its end; none where this server has none, and once
    /// the server is stopping.
    fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog>;

    /// The workers of an endpoint that have ended and whose logs are still here, oldest first.
    fn ended_workers(&self, endpoint: &EndpointId) -> Vec<WorkerId>;

    /// Keeps the archive of a folder, a gzipped tar. The same archive again is the same version, and is put back where it
    /// is not what it was.
    fn keep_code(&self, name: &str, archive: Bytes) -> Result<CodeVersion, CodeError>;

    /// The versions under a name, newest first.
    fn code_versions(&self, name: &str) -> Vec<CodeVersion>;

    /// Whether this code is here. It will be for a day, whether it is used or not.
    fn has_code(&self, code: &CodeHash) -> bool;

    /// Begins to remove what was found unused for a day: names of which no version is used, and of others the oldest
    /// versions beyond a bound. To be called again and again; does not block.
    fn forget_code(&self, is_used: IsUsed);
}

/// A server without files.
pub(crate) struct NoFiles;

impl FileService for NoFiles {
    fn worker_log(&self, _endpoint: &EndpointId, _worker: &WorkerId) -> Option<WorkerLog> {
        None
    }

    fn ended_workers(&self, _endpoint: &EndpointId) -> Vec<WorkerId> {
        Vec::new()
    }

    fn keep_code(&self, _name: &str, _archive: Bytes) -> Result<CodeVersion, CodeError> {
        Err(CodeError::Unavailable("this server keeps no code".to_owned()))
    }

    fn code_versions(&self, _name: &str) -> Vec<CodeVersion> {
        Vec::new()
    }

    fn has_code(&self, _code: &CodeHash) -> bool {
        false
    }

    fn forget_code(&self, _is_used: IsUsed) {}
}
