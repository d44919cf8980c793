//! Handles the exits of workers, and moves their folders to the ended ones.

use std::fs;
use std::sync::Arc;

use super::{LauncherShared, in_background, locked};
use crate::worker_dir::{ExitNote, WorkerDir, WorkerNote};
use crate::{LaunchError, LaunchEvent, WorkerExit, tail};

impl LauncherShared {
    /// The notes of the workers that an earlier launcher left in the folder.
    pub(super) fn live_states(&self) -> Result<Vec<WorkerNote>, LaunchError> {
        let live = self.folders.live_dir();
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
            shared.note_crash(&state.worker, &exit);
            let exited = WorkerExit {
                worker: state.worker,
                endpoint: state.endpoint,
                code: exit.code,
                signal: exit.signal,
                because: exit.because,
                ran_ms: exit.ran_ms,
                log_tail: tail(&dir.log()),
                stage: dir.stage(),
                expected: dir.is_stopping(),
                placement: state.placement,
            };
            let kept = shared.folders.put_away(&dir, &exited.endpoint, &exited.worker);
            (exited, kept)
        });
        let handled = handled.await;
        locked(&self.running).remove(&worker);
        let (exited, kept) = handled.ok()?;
        // A dropped receiver means that the engine is gone.
        let _ = self.events.send(LaunchEvent::Exited(exited));
        Some(kept)
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
