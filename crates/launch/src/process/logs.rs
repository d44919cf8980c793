//! Where the logs of workers are.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longshore_model::{EndpointId, WorkerId};

use super::LauncherShared;
use crate::WorkerLog;
use crate::worker_dir::WorkerDir;

impl LauncherShared {
    pub(super) fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog> {
        let live = self.live(worker);
        if live.state().is_some_and(|state| state.endpoint == *endpoint) && live.log().is_file() {
            let is_live = !live.has_exit();
            return Some(WorkerLog { worker: worker.clone(), path: live.log(), is_live });
        }
        let path = WorkerDir::at(self.ended_dir(endpoint).join(worker.as_str())).log();
        path.is_file().then(|| WorkerLog { worker: worker.clone(), path, is_live: false })
    }

    pub(super) fn ended_workers(&self, endpoint: &EndpointId) -> Vec<WorkerId> {
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

    pub(super) fn worker_logs(&self) -> Vec<WorkerLog> {
        let live = folders(&self.dir.join("live")).into_iter().map(WorkerDir::at);
        let live = live.filter_map(|dir| log_in(&dir, !dir.has_exit()));
        let ended = folders(&self.dir.join("ended")).into_iter().flat_map(|endpoint| folders(&endpoint));
        live.chain(ended.filter_map(|path| log_in(&WorkerDir::at(path), false))).collect()
    }

    /// The folder with the folders of an endpoint's ended workers.
    pub(super) fn ended_dir(&self, endpoint: &EndpointId) -> PathBuf {
        self.dir.join("ended").join(endpoint.as_str())
    }
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn log_in(dir: &WorkerDir, is_live: bool) -> Option<WorkerLog> {
    let worker = dir.path().file_name()?.to_str()?.parse().ok()?;
    dir.log().is_file().then(|| WorkerLog { worker, path: dir.log(), is_live })
}
