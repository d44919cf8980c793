//! What the server keeps in its data folder that callers can reach: what workers print, and deployed code.
//!
//! ```text
//! workers/…                     the launcher's: see its description of a worker's folder
//! code/<name>/<hash>/           a deployed folder, as it was sent; templates name it `code:<hash>`
//! code/<name>/<hash>.json       what is known of it; written last, so that half a version is none
//! code/<name>/env-<…>/          a Python environment, shared by the versions that need the same
//! ```

mod archive;
mod code;
mod compare;
mod extensions;
mod forget;
#[cfg(test)]
mod hostile;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use longshore_http::{CodeError, CodeVersion, FileService, IsUsed, WorkerLog};
use longshore_launch::CodeFolders;
use longshore_model::{CodeHash, EndpointId, WorkerId};
use serde::Deserialize;

use self::forget::Unused;
use crate::parts;

/// See the module.
pub(crate) struct DataFiles {
    workers: PathBuf,
    code: CodeFolders,
    unused: Arc<Unused>,
    closed: AtomicBool,
}

impl DataFiles {
    /// The files of the server on this data folder.
    pub(crate) fn new(data_dir: &Path) -> Self {
        // Workers have folders of their own: a relative path would lead elsewhere from there.
        let data_dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        let code = CodeFolders::at(&parts::code_dir(&data_dir));
        let closed = AtomicBool::new(false);
        Self { workers: parts::workers_dir(&data_dir), code, unused: Arc::default(), closed }
    }

    /// The server is stopping: nobody follows a log any longer.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn ended_dir(&self, endpoint: &EndpointId) -> PathBuf {
        self.workers.join("ended").join(endpoint.as_str())
    }
}

impl FileService for DataFiles {
    fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let live = self.workers.join("live").join(worker.as_str());
        if serves(&live, endpoint) && live.join("log").is_file() {
            return Some(WorkerLog { path: live.join("log"), live: !live.join("exit.json").exists() });
        }
        let path = self.ended_dir(endpoint).join(worker.as_str()).join("log");
        path.is_file().then_some(WorkerLog { path, live: false })
    }

    fn ended_workers(&self, endpoint: &EndpointId) -> Vec<WorkerId> {
        let entries = fs::read_dir(self.ended_dir(endpoint)).into_iter().flatten().flatten();
        let mut ended: Vec<(SystemTime, WorkerId)> = entries
            .filter_map(|entry| {
                let at = entry.metadata().and_then(|facts| facts.modified()).ok()?;
                Some((at, entry.file_name().to_str()?.parse().ok()?))
            })
            .collect();
        ended.sort();
        ended.into_iter().map(|(_, worker)| worker).collect()
    }

    fn keep_code(&self, name: &str, archive: Bytes) -> Result<CodeVersion, CodeError> {
        let dir = self.code.path().join(name);
        // Before and after: it takes its time, and is to be run then.
        self.unused.touch(&dir);
        let kept = code::keep(&dir, name, &archive);
        if let Ok(version) = &kept {
            self.unused.touch(&dir);
            self.unused.touch(&dir.join(version.hash.as_str()));
        }
        kept
    }

    fn code_versions(&self, name: &str) -> Vec<CodeVersion> {
        code::versions(&self.code.path().join(name), name)
    }

    fn has_code(&self, code: &CodeHash) -> bool {
        let Some(folder) = self.code.find(code) else { return false };
        if let Some(name) = folder.parent() {
            self.unused.touch(name);
        }
        self.unused.touch(&folder);
        folder.is_dir()
    }

    fn forget_code(&self, is_used: IsUsed) {
        let (code, unused) = (self.code.clone(), Arc::clone(&self.unused));
        // Nobody waits for it.
        std::thread::spawn(move || unused.look(code.path(), Instant::now(), &is_used));
    }
}

/// Whether the worker with this folder serves that endpoint; its launcher noted it there.
fn serves(folder: &Path, endpoint: &EndpointId) -> bool {
    #[derive(Deserialize)]
    struct WorkerNote {
        endpoint: EndpointId,
    }
    let note = fs::read(folder.join("state.json")).ok();
    let state: Option<WorkerNote> = note.and_then(|note| serde_json::from_slice(&note).ok());
    state.is_some_and(|state| state.endpoint == *endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_shown_to_those_of_its_endpoint_alone() {
        let dir = tempfile::tempdir().unwrap();
        let files = DataFiles::new(dir.path());
        let (ours, theirs) = (EndpointId::mint(1), EndpointId::mint(2));
        let put = |path: &str, state: Option<&EndpointId>| {
            let folder = dir.path().join("workers").join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("log"), "x").unwrap();
            if let Some(endpoint) = state {
                fs::write(folder.join("state.json"), format!("{{\"endpoint\":\"{endpoint}\"}}")).unwrap();
            }
        };
        put("live/w-live", Some(&ours));
        put(&format!("ended/{ours}/w-ended"), None);
        let found = |endpoint: &EndpointId, worker: &str| {
            files.worker_log(endpoint, &worker.parse().unwrap()).map(|log| log.live)
        };
        assert_eq!(found(&ours, "w-live"), Some(true));
        assert_eq!(found(&ours, "w-ended"), Some(false));
        for worker in ["w-live", "w-ended"] {
            assert_eq!(found(&theirs, worker), None, "{worker}");
        }
        assert_eq!(files.ended_workers(&ours), ["w-ended".parse().unwrap()]);
        files.close();
        assert_eq!(found(&ours, "w-live"), None);
    }
}
