//! The small process between the server and one worker.
//!
//! It starts the worker, keeps its output and notes how it ended. It belongs to no server: a server that
//! restarts finds it and the worker as they were. It has to stay small, since there is one for every worker:
//! one thread that waits, one that copies and looks whether there is a server, no runtime.
//!
//! The server gives it the order on its standard input, so that secrets are never on disk or in an argument
//! list, and reads one line back: `ok`, or why the worker could not be started.

mod output;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use longshore_model::{EndpointId, Placement, WorkerId};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use crate::cgroup::leaf::Leaf;
use crate::log::RotatedLog;
use crate::mirror::mirror;
use crate::proc::{self, ProcessId};
use crate::worker_dir::{ExitNote, WorkerDir, WorkerNote};
use crate::{RotationLimits, WorkerSpec};
use output::Orphaning;

/// What the shim is to start. Not `Debug`: the environment holds secrets.
#[derive(Serialize, Deserialize)]
pub(crate) struct ShimSpec {
    worker: WorkerId,
    endpoint: EndpointId,
    version: u32,
    command: Vec<String>,
    workdir: Option<PathBuf>,
    env: BTreeMap<String, String>,
    private_home: bool,
    placement: Placement,
    care: Care,
    /// The worker's cgroup, where it is to have one of its own.
    cgroup: Option<PathBuf>,
}

/// How a launcher wants its workers to be looked after.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Care {
    pub(crate) log: RotationLimits,
    /// What the server holds a lock on for as long as it is there.
    pub(crate) presence: PathBuf,
    /// How long the server may be away before its workers are ended; none: for ever.
    pub(crate) orphans_ended_after: Option<Duration>,
}

impl ShimSpec {
    pub(crate) fn new(spec: WorkerSpec, care: Care, cgroup: Option<PathBuf>) -> Self {
        let WorkerSpec { worker, endpoint, version, command, workdir, env, private_home, placement, .. } =
            spec;
        Self { worker, endpoint, version, command, workdir, env, private_home, placement, care, cgroup }
    }
}

/// The answer of a shim whose worker runs.
pub(crate) const STARTED: &str = "ok";

/// How long the last output of a worker is waited for: a process that escaped may hold the pipe open.
const LAST_OUTPUT_WAIT: Duration = Duration::from_secs(2);

/// Runs the shim of the worker whose folder this is, until the worker and all that it started are gone.
pub fn main(dir: &Path) -> ExitCode {
    let dir = WorkerDir::at(dir);
    hide();
    match start(&dir) {
        Ok(worker) => {
            answer(STARTED);
            let exit = attend(&worker);
            // Without this file the end is reported without a code; there is nobody to tell why.
            let _ = dir.write_exit(&exit);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            proc::end_children();
            answer(&reason);
            ExitCode::FAILURE
        }
    }
}

/// Lets no other process of the same user look into this one, which knows its worker's secrets. Not so where `/proc` hides
/// what cannot be looked into (`hidepid`): the next server has to find the shims.
fn hide() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(hides_processes) {
        // Where the kernel knows no such thing, there is nothing to hide from.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Whether a line of the mounts is a `/proc` that shows processes only to those who may look into them.
fn hides_processes(mount: &str) -> bool {
    let mut words = mount.split(' ').skip(1);
    let (place, kind, options) = (words.next(), words.next(), words.next().unwrap_or_default());
    let shows = |option: &str| matches!(option.strip_prefix("hidepid="), None | Some("0" | "off"));
    place == Some("/proc") && kind == Some("proc") && !options.split(',').all(shows)
}

/// The server may be gone already; then nobody needs the answer.
fn answer(line: &str) {
    let _ = writeln!(io::stdout(), "{}", line.replace('\n', " "));
}

/// A worker that runs.
struct WorkerChild {
    pid: Pid,
    cgroup: Option<Leaf>,
    since: Instant,
    output_ended: mpsc::Receiver<()>,
}

fn start(dir: &WorkerDir) -> Result<WorkerChild, String> {
    rustix::process::setsid().map_err(|e| format!("cannot begin a session: {e}"))?;
    // What the worker leaves behind becomes our child, so that it can be found and ended.
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|e| format!("cannot adopt orphans: {e}"))?;
    let order: ShimSpec =
        serde_json::from_reader(io::stdin().lock()).map_err(|e| format!("no valid order: {e}"))?;

    let shim = ProcessId::of(own).ok_or("cannot read /proc: is it mounted?")?;
    let mut state = WorkerNote {
        worker: order.worker.clone(),
        endpoint: order.endpoint,
        version: order.version,
        placement: order.placement.clone(),
        folder: dir.identity(),
        shim,
        process: None,
        cgroup: order.cgroup.clone(),
    };
    let keep = |state: &WorkerNote| {
        dir.write_state(state).map_err(|e| format!("cannot write into {}: {e}", dir.path().display()))
    };
    keep(&state)?;

    let log = RotatedLog::open(&dir.log(), order.care.log)
        .map_err(|e| format!("cannot open the log in {}: {e}", dir.path().display()))?;
    let leaf = order.cgroup.as_ref().map(Leaf::at);
    enter(leaf.as_ref())?;
    let (child, output) = spawn(&order, dir, &state.shim)?;
    // Ending the worker's cgroup must not end the shim.
    enter(leaf.as_ref().map(Leaf::of_shim).as_ref())?;
    let since = Instant::now();
    let pid = Pid::from_child(&child);
    state.process = ProcessId::of(pid);
    keep(&state)?;
    let Care { presence, orphans_ended_after: after, .. } = order.care;
    let orphaning = Orphaning { presence, after, dir: dir.clone(), worker: state.process };
    Ok(WorkerChild { pid, cgroup: leaf, since, output_ended: output::keep(output, log, orphaning)? })
}

/// Moves this process into a cgroup: what it starts begins there.
fn enter(leaf: Option<&Leaf>) -> Result<(), String> {
    let Some(leaf) = leaf else { return Ok(()) };
    leaf.enter().map_err(|e| format!("cannot enter the cgroup {}: {e}", leaf.path().display()))
}

fn spawn(order: &ShimSpec, dir: &WorkerDir, shim: &ProcessId) -> Result<(Child, PipeReader), String> {
    let cwd = prepare_cwd(order, dir)?;
    let (program, arguments) = order.command.split_first().ok_or("the command is empty")?;
    let (output, input) = io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let both = input.try_clone().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&cwd).env("PWD", &cwd).process_group(0);
    command.stdin(Stdio::null()).stdout(input).stderr(both);
    for name in own_settings() {
        command.env_remove(name);
    }
    if let Some(home) = prepare_home(order, dir)? {
        command.env("HOME", home);
    }
    command.envs(&order.env).env(proc::MARK, shim.mark());
    // `command` holds the pipe's other end: with it dropped, the output ends when the worker's does.
    let child = command.spawn().map_err(|e| format!("cannot start `{program}`: {e}"))?;
    Ok((child, output))
}

/// The server's own settings, its admin key among them, are none of the worker's business.
pub(crate) fn own_settings() -> impl Iterator<Item = OsString> {
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.as_encoded_bytes().starts_with(b"LONGSHORE_"))
}

/// Each worker runs in a folder of its own that shows what is in the `workdir`.
fn prepare_cwd(order: &ShimSpec, dir: &WorkerDir) -> Result<PathBuf, String> {
    let cwd = dir.cwd();
    let made = match &order.workdir {
        Some(workdir) => mirror(workdir, &cwd, |name| name.starts_with(".runpod_jobs"))
            .map_err(|e| format!("cannot use the workdir {}: {e}", workdir.display())),
        None => std::fs::create_dir(&cwd).map_err(|e| format!("cannot make {}: {e}", cwd.display())),
    };
    made.map(|()| cwd)
}

fn prepare_home(order: &ShimSpec, dir: &WorkerDir) -> Result<Option<PathBuf>, String> {
    let real = std::env::var_os("HOME").filter(|home| order.private_home && !home.is_empty());
    let Some(real) = real else { return Ok(None) };
    let home = dir.home();
    mirror(Path::new(&real), &home, |name| name == ".runpod")
        .map_err(|e| format!("cannot make the worker's home folder: {e}"))?;
    Ok(Some(home))
}

/// Waits until the worker ends, then ends what it left behind.
fn attend(worker: &WorkerChild) -> ExitNote {
    let status = wait_for(worker.pid);
    let ran_ms = worker.since.elapsed().as_millis() as u64;
    let _ = rustix::process::kill_process_group(worker.pid, Signal::KILL);
    proc::end_children();
    let because = worker.cgroup.as_ref().and_then(Leaf::out_of_memory);
    if let Some(leaf) = &worker.cgroup {
        // What does not end now is the server's to look after.
        let _ = leaf.end();
    }
    let _ = worker.output_ended.recv_timeout(LAST_OUTPUT_WAIT);
    let (code, signal) = status.map_or((None, None), |s| (s.exit_status(), s.terminating_signal()));
    ExitNote { code, signal, ran_ms, because }
}

/// Collects orphans, too, while it waits.
fn wait_for(worker: Pid) -> Option<WaitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == worker => return Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_that_hides_processes_is_known() {
        for mount in
            ["proc /proc proc rw,hidepid=2 0 0", "proc /proc proc rw,gid=5,hidepid=invisible,nosuid 0 0"]
        {
            assert!(hides_processes(mount), "{mount}");
        }
        for mount in [
            "proc /proc proc rw,nosuid 0 0",
            "proc /proc proc rw,hidepid=0 0 0",
            "x /x ext4 hidepid=2 0 0",
            "",
        ] {
            assert!(!hides_processes(mount), "{mount}");
        }
    }
}
