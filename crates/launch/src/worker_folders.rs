//! The folders of a launcher's workers: those that run, and of each endpoint those that ended last.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longshore_model::{EndedWorker, EndpointId, Placement, Served, WorkerId};
use serde::{Deserialize, Serialize};

use crate::worker_dir::WorkerDir;
use crate::{LaunchError, RunningWorker, WorkerLog};

/// The number of ended workers per endpoint whose logs are stored.
const ENDED_KEPT: usize = 10;

/// The folders of a launcher's workers. A clone is another handle of the same folders.
#[derive(Clone, Debug)]
pub struct WorkerFolders(PathBuf);

/// What the notes of every launcher say about a worker.
#[derive(Serialize, Deserialize)]
struct WorkerFacts {
    worker: WorkerId,
    endpoint: EndpointId,
    version: u32,
    #[serde(default)]
    placement: Placement,
}

impl WorkerFolders {
    /// The folders in `dir`, which is created with the first worker. Only one launcher at a time may use `dir`.
    pub fn at(dir: &Path) -> Self {
        Self(std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()))
    }

    /// A number that the folder keeps when it is moved, and that a copy does not have.
    ///
    /// # Errors
    ///
    /// The folder could not be created or read.
    pub fn identity(&self) -> io::Result<u64> {
        fs::create_dir_all(&self.0)?;
        Ok(fs::metadata(&self.0)?.ino())
    }

    /// The folder of all folders.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of a worker that runs.
    pub fn live(&self, worker: &WorkerId) -> WorkerDir {
        WorkerDir::at(self.live_dir().join(worker.as_str()))
    }

    /// The folder with the folders of the workers that run.
    pub(crate) fn live_dir(&self) -> PathBuf {
        self.0.join("live")
    }

    /// Notes which worker runs, in its folder. Creates the folder if there is none.
    ///
    /// # Errors
    ///
    /// The folder or the note could not be written.
    pub fn note(&self, worker: &RunningWorker) -> io::Result<()> {
        let dir = self.live(&worker.worker);
        match dir.create() {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        dir.write_facts(&WorkerFacts {
            worker: worker.worker.clone(),
            endpoint: worker.endpoint,
            version: worker.version,
            placement: worker.placement.clone(),
        })
    }

    /// Removes the folders of live workers that are not `known`: they were never started, or their containers were removed while no
    /// server ran.
    pub fn clear_unknown(&self, known: &HashSet<WorkerId>) {
        for path in folders(&self.live_dir()) {
            let worker = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if worker.is_none_or(|worker: WorkerId| !known.contains(&worker)) {
                WorkerDir::at(path).remove_quietly();
            }
        }
    }

    /// Moves a worker's folder from the live to the ended ones in one step, so that its exit is reported once. Removes the
    /// oldest ended folders of the endpoint. Returns the new folder.
    pub fn put_away(&self, dir: &WorkerDir, endpoint: &EndpointId, worker: &WorkerId) -> WorkerDir {
        let folder = self.ended_dir(endpoint);
        let kept = WorkerDir::at(folder.join(worker.as_str()));
        let moved = fs::create_dir_all(&folder).and_then(|()| fs::rename(dir.path(), kept.path()));
        if moved.is_err() {
            dir.remove_quietly();
        }
        forget_oldest(&folder);
        kept
    }

    /// Notes what an ended worker did until its end. Does nothing if its folder has been removed.
    ///
    /// # Errors
    ///
    /// The note could not be written.
    pub fn note_served(
        &self,
        endpoint: &EndpointId,
        worker: &WorkerId,
        served: &Served,
    ) -> Result<(), LaunchError> {
        let dir = WorkerDir::at(self.ended_dir(endpoint).join(worker.as_str()));
        match dir.write_served(served) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LaunchError(format!("cannot write to {}: {error}", dir.path().display())))
            }
            _ => Ok(()),
        }
    }

    /// Removes the folders of an endpoint's ended workers.
    ///
    /// # Errors
    ///
    /// A folder could not be removed.
    pub fn remove_ended(&self, endpoint: &EndpointId) -> Result<(), LaunchError> {
        let folder = self.ended_dir(endpoint);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LaunchError(format!("cannot remove {}: {error}", folder.display())))
            }
            _ => Ok(()),
        }
    }

    /// The log of a worker of this endpoint; `None` without a log file, and for a worker of another endpoint.
    pub fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog> {
        let live = self.live(worker);
        let is_of = |facts: WorkerFacts| facts.endpoint == *endpoint;
        if live.facts().is_some_and(is_of) && live.log().is_file() {
            let is_live = !live.has_exit();
            return Some(WorkerLog { worker: worker.clone(), path: live.log(), is_live });
        }
        let path = WorkerDir::at(self.ended_dir(endpoint).join(worker.as_str())).log();
        path.is_file().then(|| WorkerLog { worker: worker.clone(), path, is_live: false })
    }

    /// The ended workers of an endpoint, oldest first.
    pub fn ended_workers(&self, endpoint: &EndpointId) -> Vec<EndedWorker> {
        let mut ended: Vec<EndedWorker> =
            folders(&self.ended_dir(endpoint)).into_iter().filter_map(|path| ended_in(&path)).collect();
        ended.sort_by(|a, b| (a.ended_at, &a.worker).cmp(&(b.ended_at, &b.worker)));
        ended
    }

    /// The logs of all workers, those of running workers first.
    pub fn worker_logs(&self) -> Vec<WorkerLog> {
        let live = folders(&self.live_dir()).into_iter().map(WorkerDir::at);
        let live = live.filter_map(|dir| log_in(&dir, !dir.has_exit()));
        let ended = folders(&self.0.join("ended")).into_iter().flat_map(|endpoint| folders(&endpoint));
        live.chain(ended.filter_map(|path| log_in(&WorkerDir::at(path), false))).collect()
    }

    /// The folder with the folders of an endpoint's ended workers.
    fn ended_dir(&self, endpoint: &EndpointId) -> PathBuf {
        self.0.join("ended").join(endpoint.as_str())
    }
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The ended worker of a folder, with what its notes say; `None` if the folder's name is no worker id.
fn ended_in(path: &Path) -> Option<EndedWorker> {
    let worker = path.file_name()?.to_str()?.parse().ok()?;
    let dir = WorkerDir::at(path);
    let (facts, exit): (Option<WorkerFacts>, _) = (dir.facts(), dir.exit().unwrap_or_default());
    let (version, placement) = facts.map(|facts| (facts.version, facts.placement)).unwrap_or_default();
    Some(EndedWorker {
        worker,
        version,
        placement,
        ended_at: dir.ended_at().unwrap_or_default(),
        code: exit.code,
        signal: exit.signal,
        because: exit.because,
        was_stopped: dir.is_stopping(),
        stop_reason: dir.stop_reason(),
        served: dir.served(),
    })
}

fn log_in(dir: &WorkerDir, is_live: bool) -> Option<WorkerLog> {
    let worker = dir.path().file_name()?.to_str()?.parse().ok()?;
    dir.log().is_file().then(|| WorkerLog { worker, path: dir.log(), is_live })
}

/// Removes all folders but those of the last [`ENDED_KEPT`] workers.
fn forget_oldest(folder: &Path) {
    let ended_at = |path: &Path| fs::metadata(path.join("state.json")).and_then(|facts| facts.modified());
    let mut ended: Vec<(SystemTime, PathBuf)> = folders(folder)
        .into_iter()
        .map(|path| (ended_at(&path).unwrap_or(SystemTime::UNIX_EPOCH), path))
        .collect();
    ended.sort();
    for (_, path) in ended.iter().take(ended.len().saturating_sub(ENDED_KEPT)) {
        let _ = fs::remove_dir_all(path);
    }
}
