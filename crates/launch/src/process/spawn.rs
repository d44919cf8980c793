//! Starts a shim and sends it the spec of its worker.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::ShimCommand;
use super::watch::WatchedShim;
use crate::cgroup::leaf::Leaf;
use crate::proc::ProcessId;
use crate::shim::{Care, STARTED, ShimSpec, own_settings};
use crate::worker_dir::{WorkerDir, WorkerNote};
use crate::zygote::Zygote;
use crate::{LaunchError, Limits, WorkerSpec};

/// Where a shim comes from.
pub(super) enum Source<'a> {
    /// A process of its own, which starts the worker.
    Command,
    /// A fork of the zygote, whose child becomes the worker and inherits these variables.
    Fork(&'a Zygote, &'a BTreeMap<String, String>),
}

/// A shim whose worker runs.
pub(super) struct Started {
    pub(super) shim: WatchedShim,
    pub(super) state: WorkerNote,
}

/// Starts a worker. Blocks until the worker runs. After an error nothing of the worker remains.
pub(super) fn start(
    shim: &ShimCommand,
    source: &Source<'_>,
    dir: &WorkerDir,
    spec: WorkerSpec,
    care: Care,
    cgroup: Option<(&Leaf, Limits)>,
) -> Result<Started, LaunchError> {
    let worker = spec.worker.clone();
    let failed = |reason: String| LaunchError(format!("worker {worker} was not started: {reason}"));
    dir.create().map_err(|e| failed(format!("cannot make its folder {}: {e}", dir.path().display())))?;
    let cgroup = match cgroup {
        None => None,
        Some((leaf, limits)) => match make(leaf, &limits) {
            Ok(()) => Some(leaf),
            Err(error) if limits == Limits::default() => {
                tracing::warn!(%worker, %error, "a worker runs without a cgroup of its own");
                None
            }
            Err(error) => {
                let _ = dir.remove();
                return Err(failed(error.to_string()));
            }
        },
    };
    let order = ShimSpec::new(spec, care, cgroup.map(|leaf| leaf.path().to_owned()));
    let started = match source {
        Source::Command => start_in(shim, dir, &order),
        Source::Fork(zygote, inherited) => {
            fork_in(shim, zygote, dir, &order.forked_with((*inherited).clone()))
        }
    };
    started.map_err(|reason| {
        if let Some(Err(error)) = cgroup.map(Leaf::end) {
            tracing::error!(%worker, %error, "the cgroup of a worker that was not started is left over");
        }
        // If the removal fails, the next server removes the folder: no worker was started from it.
        let _ = dir.remove();
        failed(reason)
    })
}

/// Creates a worker's cgroup. After an error there is none.
fn make(leaf: &Leaf, limits: &Limits) -> io::Result<()> {
    leaf.make().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot make the cgroup {}: {error}", leaf.path().display()))
    })?;
    leaf.limit(limits).inspect_err(|_| drop(leaf.end()))
}

fn start_in(shim: &ShimCommand, dir: &WorkerDir, order: &ShimSpec) -> Result<Started, String> {
    let mut command = Command::new(&shim.program);
    for name in own_settings() {
        command.env_remove(name);
    }
    let mut child = command
        .arg0(shim.shown_as.as_deref().unwrap_or(shim.program.as_os_str()))
        .args(&shim.arguments)
        .arg(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot run the shim {}: {e}", shim.program.display()))?;
    let answer = instruct(&mut child, order);
    match (answer, dir.state()) {
        (Ok(()), Some(state)) => Ok(Started { shim: WatchedShim::Child(child), state }),
        (answer, _) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(answer.err().unwrap_or_else(|| "its shim left no state".to_owned()))
        }
    }
}

/// Has a zygote fork the shim and its worker.
fn fork_in(
    shim: &ShimCommand,
    zygote: &Zygote,
    dir: &WorkerDir,
    order: &ShimSpec,
) -> Result<Started, String> {
    let program = File::open(&shim.program)
        .map_err(|e| format!("cannot open the shim {}: {e}", shim.program.display()))?;
    let shown_as = shim.shown_as.clone().unwrap_or_else(|| shim.program.clone().into());
    let arguments: Vec<_> =
        [shown_as].into_iter().chain(shim.arguments.iter().cloned()).chain([dir.path().into()]).collect();
    let (pid, connection) =
        zygote.fork(&program, &arguments).map_err(|e| format!("its zygote does not fork: {e}"))?;
    let process = ProcessId::of(pid).ok_or("its shim ended immediately")?;
    let answer = serde_json::to_vec(order)
        .map_err(io::Error::from)
        .and_then(|order| (&connection).write_all(&order))
        .and_then(|()| connection.shutdown(Shutdown::Write))
        .map_err(|e| format!("its shim does not listen: {e}"))
        .and_then(|()| answer(&connection));
    match (answer, dir.state()) {
        (Ok(()), Some(state)) => Ok(Started { shim: WatchedShim::Other(process), state }),
        (answer, _) => {
            process.kill_all();
            Err(answer.err().unwrap_or_else(|| "its shim left no state".to_owned()))
        }
    }
}

/// Sends the spec and reads the shim's reply.
fn instruct(child: &mut Child, order: &ShimSpec) -> Result<(), String> {
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("its shim has no pipes".to_owned());
    };
    serde_json::to_writer(stdin, order).map_err(|e| format!("its shim does not listen: {e}"))?;
    answer(stdout)
}

/// Reads the shim's reply.
fn answer(stdout: impl io::Read) -> Result<(), String> {
    let mut answer = String::new();
    BufReader::new(stdout).read_line(&mut answer).map_err(|e| format!("its shim does not answer: {e}"))?;
    match answer.trim_end() {
        STARTED => Ok(()),
        "" => Err("its shim ended without an answer".to_owned()),
        reason => Err(reason.to_owned()),
    }
}
