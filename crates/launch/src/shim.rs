//! The shim: the small process between the server and one worker.
//!
//! The shim starts the worker, writes the worker's output to the log and notes how the worker ended. The shim outlives the
//! server, and a restarted server finds both processes. There is one shim per worker, so it is small: one thread waits for
//! the worker, one copies the output and checks whether a server runs, and there is no async runtime.
//!
//! The server writes the spec to the shim's standard input, so that secrets are neither on disk nor in an argument list.
//! The shim replies with one line: `ok`, or why the worker could not be started.

mod forked;
mod output;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use longshore_model::{EndpointId, Placement, WorkerId};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use crate::cgroup::leaf::Leaf;
use crate::log::RotatedLog;
use crate::mirror::mirror;
use crate::proc::{self, ProcessId};
use crate::worker_dir::{ExitNote, WorkerDir, WorkerNote};
use crate::{RotationLimits, WorkerSpec};
use forked::Fork;
use output::Orphaning;

/// What the shim starts. Not `Debug`, because the environment contains secrets.
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
    server_url: String,
    care: Care,
    /// The worker's own cgroup; `None` without one.
    cgroup: Option<PathBuf>,
    /// The variables that a worker inherits from the server, for one that is a fork of a zygote; `None` for any other one,
    /// whose shim has inherited them.
    forked_with: Option<BTreeMap<String, String>>,
}

/// How the shims of a launcher treat their workers.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Care {
    pub(crate) log: RotationLimits,
    /// The file that the server locks while it runs.
    pub(crate) presence: PathBuf,
    /// How long the server may be absent before its workers are ended; `None`: without end.
    pub(crate) orphans_ended_after: Option<Duration>,
}

impl ShimSpec {
    pub(crate) fn new(spec: WorkerSpec, care: Care, cgroup: Option<PathBuf>) -> Self {
        let WorkerSpec { worker, endpoint, version, entrypoint, cmd, .. } = spec;
        let WorkerSpec { workdir, env, private_home, placement, server_url, .. } = spec;
        let command = entrypoint.into_iter().chain(cmd).collect();
        Self {
            worker,
            endpoint,
            version,
            command,
            workdir,
            env,
            private_home,
            placement,
            server_url,
            care,
            cgroup,
            forked_with: None,
        }
    }

    /// The spec of a worker that is a fork of a zygote, and inherits these variables.
    pub(crate) fn forked_with(self, inherited: BTreeMap<String, String>) -> Self {
        Self { forked_with: Some(inherited), ..self }
    }
}

/// The reply of a shim whose worker runs.
pub(crate) const STARTED: &str = "ok";

/// How long the shim waits for the last output: a process that escaped may keep the pipe open.
const LAST_OUTPUT_WAIT: Duration = Duration::from_secs(2);

/// Runs the shim of the worker with the folder `dir`, until the worker and all processes that it started have exited.
pub fn main(dir: &Path) -> ExitCode {
    let dir = WorkerDir::at(dir);
    hide();
    match start(&dir) {
        Ok(worker) => {
            answer(STARTED);
            let exit = attend(&worker);
            // Without this file, the exit is reported without a code. There is no log for the error.
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

/// Hides the memory of this process, which contains the worker's secrets, from other processes of the user. Not done if
/// `/proc` hides such processes (`hidepid`), because the next server has to find the shims.
fn hide() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if !mounts.lines().any(hides_processes) {
        // An error means that the kernel lacks the feature.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Whether a line of `/proc/self/mounts` is a `/proc` that hides processes which the reader may not inspect.
fn hides_processes(mount: &str) -> bool {
    let mut words = mount.split(' ').skip(1);
    let (place, kind, options) = (words.next(), words.next(), words.next().unwrap_or_default());
    let shows = |option: &str| matches!(option.strip_prefix("hidepid="), None | Some("0" | "off"));
    place == Some("/proc") && kind == Some("proc") && !options.split(',').all(shows)
}

/// Writes the reply. An error is ignored: the server has exited and needs none.
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

/// Begins a session, unless the zygote that this process was forked from has begun one for it and its worker.
///
/// `getsid` cannot tell: it returns 0, which is no process id, if the leader of the session is outside of the PID namespace.
fn begin_session() -> Result<(), String> {
    match rustix::process::setsid() {
        // Of the processes that come here, only a fork of a zygote leads its process group.
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(format!("cannot begin a session: {error}")),
    }
}

fn start(dir: &WorkerDir) -> Result<WorkerChild, String> {
    begin_session()?;
    // Orphans of the worker become children of the shim, so that the shim can find and kill them.
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
        server_url: Some(order.server_url.clone()),
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
    let (pid, output) = match &order.forked_with {
        None => {
            enter(leaf.as_ref())?;
            spawn(&order, dir, &state.shim)?
        }
        Some(inherited) => become_worker(&order, inherited, dir, &state.shim, leaf.as_ref())?,
    };
    // Killing the worker's cgroup must not kill the shim.
    enter(leaf.as_ref().map(Leaf::of_shim).as_ref())?;
    let since = Instant::now();
    state.process = ProcessId::of(pid);
    keep(&state)?;
    let Care { presence, orphans_ended_after: after, .. } = order.care;
    let orphaning = Orphaning { presence, after, dir: dir.clone(), worker: state.process };
    Ok(WorkerChild { pid, cgroup: leaf, since, output_ended: output::keep(output, log, orphaning)? })
}

/// Moves this process into a cgroup, in which its new children start.
fn enter(leaf: Option<&Leaf>) -> Result<(), String> {
    let Some(leaf) = leaf else { return Ok(()) };
    leaf.enter().map_err(|e| format!("cannot enter the cgroup {}: {e}", leaf.path().display()))
}

fn spawn(order: &ShimSpec, dir: &WorkerDir, shim: &ProcessId) -> Result<(Pid, PipeReader), String> {
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
    // Dropping `command` closes its end of the pipe, so that the output ends with the worker.
    let child = command.spawn().map_err(|e| format!("cannot start `{program}`: {e}"))?;
    Ok((Pid::from_child(&child), output))
}

/// Turns the fork that came with this process into the worker.
fn become_worker(
    order: &ShimSpec,
    inherited: &BTreeMap<String, String>,
    dir: &WorkerDir,
    shim: &ProcessId,
    leaf: Option<&Leaf>,
) -> Result<(Pid, PipeReader), String> {
    let fork = Fork::take().map_err(|e| format!("there is no fork of the zygote: {e}"))?;
    if let Some(leaf) = leaf {
        leaf.add(fork.pid).map_err(|e| format!("cannot use the cgroup {}: {e}", leaf.path().display()))?;
    }
    let cwd = prepare_cwd(order, dir)?;
    let mut env = inherited.clone();
    env.insert("PWD".to_owned(), cwd.display().to_string());
    if let Some(home) = prepare_home(order, dir)? {
        env.insert("HOME".to_owned(), home.display().to_string());
    }
    env.extend(order.env.clone());
    env.insert(proc::MARK.to_owned(), shim.mark());
    let (output, input) = io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    fork.become_worker(&cwd, &env, &input)?;
    Ok((fork.pid, output))
}

/// The variables of the server's settings, such as the admin key, which workers do not get.
pub(crate) fn own_settings() -> impl Iterator<Item = OsString> {
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.as_encoded_bytes().starts_with(b"LONGSHORE_"))
}

/// Creates the worker's current folder, which shows the entries of the `workdir`.
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
    let real = match &order.forked_with {
        None => std::env::var_os("HOME"),
        Some(inherited) => inherited.get("HOME").map(OsString::from),
    };
    let real = real.filter(|home| order.private_home && !home.is_empty());
    let Some(real) = real else { return Ok(None) };
    let home = dir.home();
    mirror(Path::new(&real), &home, |name| name == ".runpod")
        .map_err(|e| format!("cannot make the worker's home folder: {e}"))?;
    Ok(Some(home))
}

/// Waits for the worker's exit, then kills the processes that it left.
fn attend(worker: &WorkerChild) -> ExitNote {
    let status = wait_for(worker.pid);
    let ran_ms = worker.since.elapsed().as_millis() as u64;
    let _ = rustix::process::kill_process_group(worker.pid, Signal::KILL);
    proc::end_children();
    let because = worker.cgroup.as_ref().and_then(Leaf::out_of_memory);
    if let Some(leaf) = &worker.cgroup {
        // The server ends a cgroup that remains.
        let _ = leaf.end();
    }
    let _ = worker.output_ended.recv_timeout(LAST_OUTPUT_WAIT);
    let (code, signal) = status.map_or((None, None), |s| (s.exit_status(), s.terminating_signal()));
    ExitNote { code, signal, ran_ms, because }
}

/// Waits for the worker, and reaps orphans meanwhile.
fn wait_for(worker: Pid) -> Option<WaitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == worker => return Some(status),
            Ok(_) | Err(Errno::INTR) => {}
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
