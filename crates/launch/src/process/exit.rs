//! Handles the exits of workers, and moves their folders to the ended ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use longshore_model::EndpointId;

use super::{LauncherShared, in_background, locked};
use crate::worker_dir::{ExitNote, WorkerDir, WorkerNote};
use crate::{LaunchError, WorkerExit, log};

/// The number of ended workers per endpoint whose logs are stored.
const ENDED_KEPT: usize = 10;

impl LauncherShared {
    /// The notes of the workers that an earlier launcher left in the folder.
    pub(super) fn live_states(&self) -> Result<Vec<WorkerNote>, LaunchError> {
        let live = self.dir.join("live");
        let failed = |e| LaunchError(format!("cannot read the workers' folder {}: {e}", live.display()));
        if !live.exists() {
            return Ok(Vec::new());
        }
        let mut states = Vec::new();
        for entry in fs::read_dir(&live).map_err(failed)? {
            let dir = WorkerDir::at(entry.map_err(failed)?.path());
            match dir.state() {
                Some(state) if !dir.is_of(&state) => {
                    // The data directory is a copy. The worker belongs to the original, whose server may run.
                    tracing::info!(worker = %state.worker, "a copied folder of a worker is removed");
                    drop(dir.remove());
                }
                Some(state) if dir.path().ends_with(state.worker.as_str()) => states.push(state),
                // Either the server was killed while it created the folder, and no worker was started. Or the note is
                // damaged, and using it could move the folder of another worker.
                _ => drop(dir.remove()),
            }
        }
        Ok(states)
    }

    /// Reports the exit of a worker whose shim has exited, and moves its folder. Returns the new folder.
    pub(super) async fn handle_end(self: &Arc<Self>, state: WorkerNote) -> Option<WorkerDir> {
        let worker = state.worker.clone();
        let shared = self.clone();
        let handled = in_background(move || {
            let dir = shared.live(&state.worker);
            let exit = dir.exit().unwrap_or_else(|| {
                // The shim was killed, so its worker has no shim.
                let because = state.out_of_memory();
                state.end_cgroup();
                state.shim.kill_all();
                dir.exit().unwrap_or(ExitNote { because, ..ExitNote::default() })
            });
            state.end_cgroup();
            let exited = WorkerExit {
                worker: state.worker,
                endpoint: state.endpoint,
                code: exit.code,
                signal: exit.signal,
                because: exit.because,
                ran_ms: exit.ran_ms,
                log_tail: log::tail(&dir.log()),
                expected: dir.is_stopping(),
                placement: state.placement,
            };
            let kept = shared.put_away(&dir, &exited);
            (exited, kept)
        });
        let handled = handled.await;
        locked(&self.running).remove(&worker);
        let (exited, kept) = handled.ok()?;
        // A dropped receiver means that the engine is gone.
        let _ = self.ended.send(exited);
        Some(kept)
    }

    /// Moves the folder from `live` to `ended` in one step, so that the exit is reported once.
    fn put_away(&self, dir: &WorkerDir, exited: &WorkerExit) -> WorkerDir {
        let folder = self.ended_dir(&exited.endpoint);
        let kept = WorkerDir::at(folder.join(exited.worker.as_str()));
        let moved = fs::create_dir_all(&folder).and_then(|()| fs::rename(dir.path(), kept.path()));
        if moved.is_err() {
            let _ = dir.remove();
        }
        forget_oldest(&folder);
        kept
    }

    pub(super) fn remove_ended(&self, endpoint: &EndpointId) -> Result<(), LaunchError> {
        let folder = self.ended_dir(endpoint);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LaunchError(format!("cannot remove {}: {error}", folder.display())))
            }
            _ => Ok(()),
        }
    }
}

/// Removes everything but the notes and the log. May take long, so `stop` returns before.
pub(super) async fn clear(ended: Option<WorkerDir>) {
    let Some(dir) = ended else { return };
    let _ = in_background(move || {
        let _ = fs::remove_dir_all(dir.cwd());
        let _ = fs::remove_dir_all(dir.home());
    })
    .await;
}

/// Removes all folders but those of the last [`ENDED_KEPT`] workers.
fn forget_oldest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let ended_at = |path: &Path| fs::metadata(path.join("state.json")).and_then(|m| m.modified());
    let mut ended: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .map(|path| (ended_at(&path).unwrap_or(SystemTime::UNIX_EPOCH), path))
        .collect();
    ended.sort();
    for (_, path) in ended.iter().take(ended.len().saturating_sub(ENDED_KEPT)) {
        let _ = fs::remove_dir_all(path);
    }
}
