//! The files that clients of the API can reach: the logs of workers, which the launchers find, and deployed code.
//!
//! ```text
//! code/<name>/<hash>/           a deployed folder, as it was sent; templates name it `code:<hash>`
//! code/<name>/<hash>.tgz        the archive that it was sent in, for workers of other computers
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
mod stored;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use longshore_http::{CodeArchive, CodeError, CodeUpload, CodeVersion, FileService, IsUsed, WorkerLog};
use longshore_launch::{CodeFolders, Launchers};
use longshore_model::{CodeHash, EndedWorker, EndpointId, WorkerId};

use self::forget::Unused;
use self::stored::StoredBytes;
use crate::parts;

/// Files of workers and deployed code in one data directory.
pub(crate) struct DataFiles {
    data_dir: PathBuf,
    stored: StoredBytes,
    launchers: Launchers,
    code: CodeFolders,
    unused: Arc<Unused>,
    closed: AtomicBool,
}

impl DataFiles {
    /// The code in this data directory, and the logs of the workers that `launchers` run.
    pub(crate) fn new(data_dir: &Path, launchers: Launchers) -> Self {
        let code = CodeFolders::at(&parts::code_dir(data_dir));
        Self {
            data_dir: data_dir.to_owned(),
            stored: StoredBytes::of(data_dir),
            launchers,
            code,
            unused: Arc::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Ends all followed logs, because the server is stopping.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

impl DataFiles {
    /// The name under which the code in an archive is stored.
    fn name_of(&self, archive: &[u8]) -> Result<Option<String>, CodeError> {
        let folder = self.code.find(&code::hash_of(archive)?);
        let name = folder.as_deref().and_then(Path::parent).and_then(Path::file_name);
        Ok(name.and_then(|name| name.to_str()).map(str::to_owned))
    }
}

impl FileService for DataFiles {
    fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog> {
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let found = self.launchers.values().find_map(|launcher| launcher.worker_log(endpoint, worker));
        found.map(|log| WorkerLog { path: log.path, live: log.is_live })
    }

    fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.data_dir).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn store_bytes(&self) -> Option<u64> {
        Some(self.stored.get())
    }

    fn ended_workers(&self, endpoint: &EndpointId) -> Vec<EndedWorker> {
        self.launchers.values().flat_map(|launcher| launcher.ended_workers(endpoint)).collect()
    }

    fn keep_code(&self, upload: CodeUpload<'_>) -> Result<CodeVersion, CodeError> {
        let present = if upload.may_be_under_another_name { self.name_of(&upload.archive)? } else { None };
        let name = present.as_deref().unwrap_or(upload.name);
        let dir = self.code.path().join(name);
        // Touched before and after storing, which may take long: the version is about to be used.
        self.unused.touch(&dir);
        let kept = code::keep(&dir, name, &upload.archive, upload.sender);
        if let Ok(version) = &kept {
            self.unused.touch(&dir);
            self.unused.touch(&dir.join(version.hash.as_str()));
        }
        kept
    }

    fn was_sent_by(&self, code: &CodeHash, key: &str) -> bool {
        self.code.find(code).is_some_and(|folder| code::was_sent_by(&folder, key))
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

    fn open_code(&self, code: &CodeHash) -> Option<CodeArchive> {
        self.code.find(code).and_then(|folder| code::open_archive(&folder))
    }

    fn forget_code(&self, is_used: IsUsed) {
        let (code, unused) = (self.code.clone(), Arc::clone(&self.unused));
        // A detached thread: no request depends on the cleanup.
        std::thread::spawn(move || unused.look(code.path(), Instant::now(), &is_used));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use longshore_launch::{Launcher, ProcessLauncher, ShimCommand};
    use longshore_model::Provider;

    use super::*;

    #[test]
    fn logs_are_those_that_the_launchers_find_until_the_server_stops() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = EndpointId::mint(1);
        // Two launchers side by side, each with an ended worker.
        let launchers =
            [(Provider::Process, "w-one"), (Provider::Docker, "w-two")].map(|(provider, worker)| {
                let workers = dir.path().join(format!("{provider:?}"));
                let folder = workers.join("ended").join(endpoint.as_str()).join(worker);
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("log"), "x").unwrap();
                let launcher = ProcessLauncher::new(workers, ShimCommand::this_program("none"));
                (provider, Arc::new(launcher) as Arc<dyn Launcher>)
            });
        let files = DataFiles::new(dir.path(), Launchers::from(launchers));
        let found = |endpoint: &EndpointId, worker: &str| {
            files.worker_log(endpoint, &worker.parse().unwrap()).map(|log| log.live)
        };
        for worker in ["w-one", "w-two"] {
            assert_eq!(found(&endpoint, worker), Some(false), "{worker}");
            assert_eq!(found(&EndpointId::mint(2), worker), None, "{worker}");
        }
        let mut ended: Vec<_> =
            files.ended_workers(&endpoint).into_iter().map(|ended| ended.worker.to_string()).collect();
        ended.sort();
        assert_eq!(ended, ["w-one", "w-two"]);
        files.close();
        assert_eq!(found(&endpoint, "w-one"), None);
    }
}
