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
mod free_space;
#[cfg(test)]
mod hostile;
mod shared_code;
mod stored;
mod volume_use;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longshore_http::{
    CodeArchive, CodeError, CodeUpload, CodeVersion, FileService, IsUsed, KeptCode, VolumeUse, WorkerLog,
};
use longshore_launch::{CodeFolders, Launchers};
use longshore_model::{CodeHash, EndedWorker, EndpointId, VolumeId, WorkerId};

use self::forget::Unused;
use self::free_space::FreeSpace;
pub(crate) use self::free_space::SAMPLE_INTERVAL;
pub(crate) use self::shared_code::SharedCode;
use self::stored::StoredBytes;
use self::volume_use::VolumeUses;
use crate::parts;

/// Files of workers and deployed code in one data directory.
pub(crate) struct DataFiles {
    data_dir: PathBuf,
    stored: StoredBytes,
    volumes: VolumeUses,
    free: FreeSpace,
    launchers: Launchers,
    code: CodeFolders,
    /// What other computers were sent; `None` without object storage.
    shared: Option<Arc<SharedCode>>,
    unused: Arc<Unused>,
    closed: AtomicBool,
}

impl DataFiles {
    /// The code in this data directory and in object storage, and the logs of the workers that `launchers` run.
    pub(crate) fn new(data_dir: &Path, launchers: Launchers, shared: Option<Arc<SharedCode>>) -> Self {
        let code = parts::code_folders(data_dir, shared.as_ref());
        Self {
            data_dir: data_dir.to_owned(),
            stored: StoredBytes::of(data_dir),
            volumes: VolumeUses::of(parts::volumes_dir(data_dir)),
            free: FreeSpace::default(),
            launchers,
            code,
            shared,
            unused: Arc::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Samples the free space, from which [`FileService::disk_full_in`] follows. Blocks.
    pub(crate) fn note_free_space(&self) {
        if let Some(free) = self.free_bytes() {
            self.free.note(Instant::now(), free);
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
        Ok(self.code_name(&code::hash_of(archive)?))
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

    fn disk_full_in(&self) -> Option<Duration> {
        self.free.full_in()
    }

    fn store_bytes(&self) -> Option<u64> {
        Some(self.stored.get())
    }

    fn volume_use(&self, volume: &VolumeId) -> Option<VolumeUse> {
        self.volumes.get(volume)
    }

    fn ended_workers(&self, endpoint: &EndpointId) -> Vec<EndedWorker> {
        self.launchers.values().flat_map(|launcher| launcher.ended_workers(endpoint)).collect()
    }

    fn keep_code(&self, upload: CodeUpload<'_>) -> Result<KeptCode, CodeError> {
        if self.shared.is_some() {
            // What is known of it is added to, on whichever computer it was sent.
            let fetched = self.code.obtain(&code::hash_of(&upload.archive)?);
            fetched.map_err(CodeError::Unavailable)?;
        }
        let present = if upload.may_be_under_another_name { self.name_of(&upload.archive)? } else { None };
        let name = present.as_deref().unwrap_or(upload.name);
        let dir = self.code.path().join(name);
        // Touched before and after storing, which may take long: the version is about to be used.
        self.unused.touch(&dir);
        let mut kept = code::keep(&dir, name, &upload.archive, upload.sender);
        if let Ok(KeptCode { version, is_changed }) = &mut kept {
            self.unused.touch(&dir);
            self.unused.touch(&dir.join(version.hash.as_str()));
            if let Some(shared) = &self.shared {
                shared.touch(&version.hash);
                *is_changed |= shared.put(version, upload.archive)?;
            }
        }
        kept
    }

    fn was_sent_by(&self, code: &CodeHash, key: &str) -> bool {
        self.code.find(code).is_some_and(|folder| code::was_sent_by(&folder, key))
            || self.shared.as_ref().is_some_and(|shared| shared.was_sent_by(code, key))
    }

    fn code_name(&self, code: &CodeHash) -> Option<String> {
        let folder = self.code.find(code)?;
        folder.parent()?.file_name()?.to_str().map(str::to_owned)
    }

    fn code_versions(&self, name: &str) -> Vec<CodeVersion> {
        let mut versions = code::versions(&self.code.path().join(name), name);
        if let Some(shared) = &self.shared {
            let elsewhere = shared.versions(name);
            versions.extend(elsewhere.into_iter().filter(|version| self.code.find(&version.hash).is_none()));
            versions.sort_by_key(|version| std::cmp::Reverse((version.created_at, version.hash.clone())));
        }
        versions
    }

    fn has_code(&self, code: &CodeHash) -> bool {
        if let Some(shared) = &self.shared {
            shared.touch(code);
        }
        let Some(folder) = self.code.find(code) else {
            return self.shared.as_ref().is_some_and(|shared| shared.has(code));
        };
        if let Some(name) = folder.parent() {
            self.unused.touch(name);
        }
        self.unused.touch(&folder);
        folder.is_dir()
    }

    fn open_code(&self, code: &CodeHash) -> Option<CodeArchive> {
        let folder = self.code.obtain(code).unwrap_or_else(|error| {
            tracing::warn!(%code, %error, "deployed code not fetched");
            None
        });
        code::open_archive(&folder?)
    }

    fn forget_code(&self, is_used: IsUsed) {
        let (code, unused, shared) = (self.code.clone(), Arc::clone(&self.unused), self.shared.clone());
        // A detached thread: no request depends on the cleanup.
        std::thread::spawn(move || {
            unused.look(code.path(), Instant::now(), &is_used);
            if let Some(shared) = shared {
                shared.forget(Instant::now(), &is_used);
            }
        });
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
        let files = DataFiles::new(dir.path(), Launchers::from(launchers), None);
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
