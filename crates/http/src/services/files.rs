//! The files of the server that clients can read: logs of workers, and deployed code. This crate has the trait; the server
//! implements it, with the directories.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{CodeHash, EndedWorker, EndpointId, Millis, VolumeId, WorkerId};

/// The log file of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// The path. A full file is renamed, and a new one is created here.
    pub path: PathBuf,
    /// Whether the worker lives. Only then can the log grow.
    pub live: bool,
}

/// How much of the disk a network volume takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeUse {
    /// The space of its files, in bytes.
    pub bytes: u64,
    /// When it was measured.
    pub measured_at: Millis,
}

/// One version of deployed code: an archive of a folder with a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeVersion {
    /// The name that all versions of the code share.
    pub name: String,
    /// The SHA-256 of the archive.
    pub hash: CodeHash,
    /// The number of files in the archive.
    pub files: u64,
    /// The size of all files together, in bytes.
    pub bytes: u64,
    /// The time at which the archive was stored.
    pub created_at: Millis,
}

/// The result of storing an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCode {
    /// The version that is stored now.
    pub version: CodeVersion,
    /// Whether files were written: the version was new, or files of it were missing or differed. If not, everything was
    /// there.
    pub is_changed: bool,
}

/// The archive of a folder that a client sends.
pub struct CodeUpload<'a> {
    /// The name under which the code is stored.
    pub name: &'a str,
    /// Whether code that is stored under another name already is repaired there and not stored twice.
    pub may_be_under_another_name: bool,
    /// The bytes of a gzipped tar.
    pub archive: Bytes,
    /// The id of the key that sends it.
    pub sender: &'a str,
}

/// The stored archive of code, open from its start.
#[derive(Debug)]
pub struct CodeArchive {
    /// A gzipped tar whose SHA-256 is the hash of the code.
    pub file: File,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Whether a template or a version of an endpoint runs the code with this hash.
pub type IsUsed = Box<dyn Fn(&CodeHash) -> bool + Send>;

/// Why code was not stored.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The archive is invalid, for the reason in the text. The client must send another.
    #[error("{0}")]
    Unusable(String),
    /// The server stores no code, or its disk failed. The client can retry.
    #[error("{0}")]
    Unavailable(String),
}

/// Access to the server's files. The methods block, except where noted.
pub trait FileService: Send + Sync {
    /// The log of a worker of this endpoint. Logs are stored for a time after the worker's end. `None` if there is no log
    /// or the server is stopping.
    fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog>;

    /// The free space of the data directory's disk, in bytes; `None` if it is unknown.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// After how long the disk of the data directory is full if it goes on filling as in the last two hours; `None` if it
    /// does not fill, or if that is unknown.
    fn disk_full_in(&self) -> Option<Duration> {
        None
    }

    /// The bytes of the files with rows and payloads, at most 5 minutes old; `None` if it is unknown.
    fn store_bytes(&self) -> Option<u64> {
        None
    }

    /// How much of the disk a network volume takes, measured at most 5 minutes before the request before this one; `None`
    /// before the first measurement. Does not block.
    fn volume_use(&self, _volume: &VolumeId) -> Option<VolumeUse> {
        None
    }

    /// The ended workers of an endpoint whose logs are stored, oldest first.
    fn ended_workers(&self, endpoint: &EndpointId) -> Vec<EndedWorker>;

    /// Stores the archive of a folder, a gzipped tar. Storing the same archive again returns the same version and repairs
    /// its files if they were changed.
    ///
    /// # Errors
    ///
    /// [`CodeError`]: the archive is invalid or cannot be stored.
    fn keep_code(&self, upload: CodeUpload<'_>) -> Result<KeptCode, CodeError>;

    /// Whether the key with this id has sent the code. Of the keys that sent the same code, only the newest 16 are known.
    fn was_sent_by(&self, code: &CodeHash, key: &str) -> bool;

    /// The name under which the code is stored on this computer; `None` if it is not.
    fn code_name(&self, _code: &CodeHash) -> Option<String> {
        None
    }

    /// The versions of the code with this name, newest first.
    fn code_versions(&self, name: &str) -> Vec<CodeVersion>;

    /// Whether this code is stored. If so, it stays for at least a day, even unused.
    fn has_code(&self, code: &CodeHash) -> bool;

    /// Opens the archive in which this code was sent; `None` if it is not stored. Code that an earlier
    /// version of the server stored has none until it is sent again.
    fn open_code(&self, _code: &CodeHash) -> Option<CodeArchive> {
        None
    }

    /// Starts removing code that was unused for a day: names without a used version, and the oldest versions over a limit
    /// of other names. To be called periodically. Does not block.
    fn forget_code(&self, is_used: IsUsed);
}

/// The service of a server without files, as in tests.
pub(crate) struct NoFiles;

impl FileService for NoFiles {
    fn worker_log(&self, _endpoint: &EndpointId, _worker: &WorkerId) -> Option<WorkerLog> {
        None
    }

    fn ended_workers(&self, _endpoint: &EndpointId) -> Vec<EndedWorker> {
        Vec::new()
    }

    fn was_sent_by(&self, _code: &CodeHash, _key: &str) -> bool {
        false
    }

    fn keep_code(&self, _upload: CodeUpload<'_>) -> Result<KeptCode, CodeError> {
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
