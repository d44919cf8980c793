//! Attends to a container from its start to its removal: copies its output, and reports its exit once.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::models::ContainerState;
use bollard::query_parameters::{InspectContainerOptions, LogsOptionsBuilder, RemoveContainerOptionsBuilder};
use futures_util::StreamExt;
use longshore_launch::{ExitNote, LaunchEvent, RotationLimits, RunningWorker, WorkerExit, tail};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::daemon::{Daemon, reason, status};
use crate::launcher::Shared;
use crate::output::OutputCopy;
use crate::refusals;

/// The pause before the daemon is asked again about a container whose output ended although it runs.
const AGAIN_IN: Duration = Duration::from_millis(200);
/// The pause while the daemon does not answer.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
/// The exit code of a process that a signal ended is this number and that of the signal.
const SIGNAL_BASE: i64 = 128;
const SIGNAL_MAX: i64 = 31;

/// A container that runs, or has exited and is not handled.
pub(crate) struct Attended {
    pub(crate) worker: RunningWorker,
    /// The id of the container, as the daemon shows it in full.
    pub(crate) id: String,
    /// The memory limit of the worker; `None` if it has none, or if it is unknown.
    pub(crate) memory_bytes: Option<u64>,
    /// When the container was started or adopted.
    pub(crate) since: Instant,
}

/// Returns when the container has exited and is removed, and its exit is reported.
pub(crate) async fn attend(shared: &Arc<Shared>, daemon: &Daemon, attended: Attended) {
    let mut has_answered = true;
    let state = loop {
        copy_output(shared, daemon, &attended).await;
        match daemon.docker.inspect_container(&attended.id, None::<InspectContainerOptions>).await {
            Ok(found) => {
                has_answered = true;
                let state = found.state.unwrap_or_default();
                if state.running != Some(true) {
                    break Some(state);
                }
                sleep(AGAIN_IN).await;
            }
            // Another program removed it.
            Err(error) if status(&error) == Some(404) => break None,
            Err(error) => {
                if std::mem::take(&mut has_answered) {
                    let error = reason(&error);
                    tracing::warn!(worker = %attended.worker.worker, error, "the Docker daemon does not answer");
                }
                sleep(AWAY_PAUSE).await;
            }
        }
    };
    report(shared, &attended, state).await;
    remove(daemon, &attended.id).await;
}

/// Copies the output until it ends, or until the daemon goes away.
async fn copy_output(shared: &Shared, daemon: &Daemon, attended: &Attended) {
    let worker = &attended.worker.worker;
    let log = shared.folders.live(worker).log();
    let mut copy = match OutputCopy::open(&log, RotationLimits::default()) {
        Ok(copy) => copy,
        Err(error) => {
            tracing::error!(%worker, %error, path = %log.display(), "the output of a worker is not copied");
            return sleep(AWAY_PAUSE).await;
        }
    };
    let options = LogsOptionsBuilder::new().follow(true).stdout(true).stderr(true).timestamps(true);
    let mut output = pin!(daemon.docker.logs(&attended.id, Some(options.since(copy.since_s()).build())));
    while let Some(Ok(message)) = output.next().await {
        let (LogOutput::StdOut { message }
        | LogOutput::StdErr { message }
        | LogOutput::StdIn { message }
        | LogOutput::Console { message }) = message;
        if let Err(error) = copy.copy(&message) {
            tracing::error!(%worker, %error, "output of a worker was not copied");
        }
    }
}

/// Notes the exit, moves the worker's folder to the ended ones, and sends the event.
async fn report(shared: &Arc<Shared>, attended: &Attended, state: Option<ContainerState>) {
    let is_gone = state.is_none();
    let state = state.unwrap_or_default();
    let code = state.exit_code.filter(|_| !is_gone);
    let signal = code.map(|code| code - SIGNAL_BASE).filter(|signal| (1..=SIGNAL_MAX).contains(signal));
    let signal = signal.map(|signal| signal as i32);
    let out_of_memory = state.oom_killed.unwrap_or_default();
    let (limit, ran_ms) = (attended.memory_bytes, attended.since.elapsed().as_millis() as u64);
    let (folders, worker) = (shared.folders.clone(), attended.worker.clone());
    let exited = spawn_blocking(move || {
        let dir = folders.live(&worker.worker);
        let expected = dir.is_stopping();
        let because = if is_gone && !expected {
            Some("removed by another program, for example with `docker rm`".to_owned())
        } else {
            refusals::of_exit(signal, out_of_memory, limit, expected)
        };
        let code = code.filter(|_| signal.is_none()).map(|code| code as i32);
        let exited = WorkerExit {
            worker: worker.worker,
            endpoint: worker.endpoint,
            code,
            signal,
            because: because.clone(),
            ran_ms,
            log_tail: tail(&dir.log()),
            stage: None,
            expected,
            placement: worker.placement,
        };
        if let Err(error) = dir.write_exit(&ExitNote { code, signal, ran_ms, because }) {
            tracing::warn!(worker = %exited.worker, %error, "the end of a worker is not noted");
        }
        let kept = folders.put_away(&dir, &exited.endpoint, &exited.worker);
        // The current folder of deployed code.
        let _ = std::fs::remove_dir_all(kept.path().join("cwd"));
        exited
    });
    if let Ok(exited) = exited.await {
        // A dropped receiver means that the engine is gone.
        let _ = shared.events.send(LaunchEvent::Exited(exited));
    }
}

/// Removes a container, also one that runs. A failure is logged.
pub(crate) async fn remove(daemon: &Daemon, container: &str) {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match daemon.docker.remove_container(container, Some(options)).await {
        Err(error) if status(&error) != Some(404) && status(&error) != Some(409) => {
            let error = reason(&error);
            tracing::warn!(container, error, "a container is left over until the next start of the server");
        }
        _ => {}
    }
}
