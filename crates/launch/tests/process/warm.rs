//! Workers that are forks of a zygote: they end, and are seen, as workers that are started by their command.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use longshore_launch::{Launcher as _, WorkerExit, WorkerSpec};
use longshore_model::{EndpointId, StopReason, WorkerId};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::harness::{DEADLINE, GRACE, Server, eventually, is_alive, launcher, sh};

/// The begin of each worker. It notes its imports immediately, as the SDK does after the first job.
const BEGIN: &str = "
import os, sys
from longshore_runtime import imports
imports.job_ended()
print('fork=' + str('longshore_runtime.zygote' in sys.modules), flush=True)
print('shim=' + str(os.getppid()), flush=True)
";

/// Scripts and how a process that runs one ends.
const ENDS: &[&str] = &[
    "pass",
    "sys.exit(7)",
    "sys.exit('a reason')",
    "raise SystemExit(3)",
    "os._exit(5)",
    "1 / 0",
    "raise KeyboardInterrupt",
    "os.kill(os.getpid(), 9)",
    "os.kill(os.getpid(), 11)",
    "os.kill(os.getpid(), 15)",
    "os.kill(os.getpid(), 2)",
    "os.abort()",
    "import ctypes; ctypes.string_at(0)",
    "import atexit; atexit.register(print, 'at exit')",
    "sys.stdout.write('without a line end')",
    "import threading; threading.Thread(target=lambda: print('of a thread')).start()",
    "import subprocess; print(subprocess.run(['sh', '-c', 'exit 4']).returncode)",
    "import subprocess; subprocess.Popen(['setsid', 'sleep', '600']); sys.exit(6)",
    "
if os.fork() == 0:
    print('of a child')
    os._exit(0)
print(os.wait()[1])",
    "
import asyncio, signal
async def main():
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await done.wait()
    sys.exit(9)
asyncio.run(main())",
    "
import multiprocessing
def double(number):
    return number * 2
if __name__ == '__main__':
    for method in ('fork', 'spawn', 'forkserver'):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(double, [1, 2]))",
    "print(__name__, __file__ == os.path.abspath(__file__), sys.argv[1:], sys.path[0] == os.path.dirname(os.path.realpath(__file__)))",
    "print(sorted(name for name in globals() if not name.startswith('__')))",
    "print(os.getcwd() == os.environ['PWD'], os.getpgid(0) == os.getpid(), os.getsid(0) == os.getppid())",
    "print(sorted(os.listdir('/proc/self/fd')), os.readlink('/proc/self/fd/0'), sys.stdin.read() == '')",
    "print(open('/proc/self/cmdline').read().strip('\\0').split('\\0')[1:])",
    "
with open('/proc/self/environ') as shown:
    shown = {entry for entry in shown.read().split('\\0') if entry}
print(shown == {f'{name}={value}' for name, value in os.environ.items() if name != 'LONGSHORE_IMPORTS'})",
];

/// A server whose workers of one script may be forks.
struct WarmServer {
    server: Server,
    workdir: PathBuf,
    started: AtomicU32,
}

impl WarmServer {
    fn on(dir: &TempDir) -> Self {
        let workdir = dir.path().join("handler");
        fs::create_dir_all(&workdir).unwrap();
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python").canonicalize().unwrap();
        let launcher = launcher(&dir.path().join("workers")).with_worker_runtime(python).with_zygotes(2);
        Self { server: Server::of(launcher), workdir, started: AtomicU32::new(0) }
    }

    /// The spec of a new worker that runs this script.
    fn spec(&self, script: &str) -> WorkerSpec {
        fs::write(self.workdir.join("handler.py"), format!("{BEGIN}{script}\n")).unwrap();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let cmd = ["python3", "handler.py", "an argument"].map(str::to_owned).to_vec();
        let worker = format!("wk-{number}").parse().unwrap();
        let workdir = Some(self.workdir.clone());
        let endpoint = self.server.endpoint;
        WorkerSpec { worker, endpoint, entrypoint: Vec::new(), cmd, workdir, flashboot: true, ..sh("") }
    }

    async fn start(&self, spec: WorkerSpec) -> WorkerId {
        let worker = spec.worker.clone();
        self.server.launcher.start(spec).await.unwrap();
        worker
    }

    async fn is_fork(&self, worker: &WorkerId) -> bool {
        self.server.printed(worker, "fork").await == "True"
    }

    async fn stop(&mut self, worker: &WorkerId) {
        self.server.launcher.stop(worker, GRACE, &StopReason::Operator).await.unwrap();
        assert_eq!(self.server.exited().await.worker, *worker);
    }

    /// Starts workers until one is a fork, and ends it.
    async fn warm(&mut self) {
        let worker = self.first_fork(|server| server.spec("import time\ntime.sleep(600)")).await;
        self.stop(&worker).await;
    }

    /// Starts workers with this spec until one is a fork, which runs on. The others end.
    async fn first_fork(&mut self, spec: impl Fn(&Self) -> WorkerSpec) -> WorkerId {
        let began = Instant::now();
        loop {
            let worker = self.start(spec(self)).await;
            if self.is_fork(&worker).await {
                return worker;
            }
            // The note of the first one is read within this time.
            eventually(|| (began.elapsed().as_millis() > 500).then_some(())).await;
            self.stop(&worker).await;
            assert!(began.elapsed() < DEADLINE, "no worker was a fork");
        }
    }

    /// How a worker with this script ends, and what it printed.
    async fn end(&mut self, script: &str, flashboot: bool) -> (WorkerExit, String) {
        let spec = WorkerSpec { flashboot, ..self.spec(script) };
        let worker = self.start(spec).await;
        let exit = self.server.exited().await;
        (exit, self.server.log(&worker))
    }

    /// A worker that is a fork and runs until it is stopped, and its zygote.
    async fn fork_and_zygote(&self, spec: WorkerSpec) -> (WorkerId, String) {
        let worker = self.start(spec).await;
        assert!(self.is_fork(&worker).await);
        let zygote = self.zygote_of(&worker).await;
        (worker, zygote)
    }

    /// The process of the zygote of a fork: the parent of its shim.
    async fn zygote_of(&self, worker: &WorkerId) -> String {
        let shim = self.server.printed(worker, "shim").await;
        let stat = fs::read_to_string(format!("/proc/{shim}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned()
    }
}

/// What is the same for a fork: all but the first two lines, a line of the traceback, the numbers of processes, and the name of
/// the worker's folder.
fn comparable(exit: &WorkerExit, log: &str) -> Vec<String> {
    let is_own =
        |line: &&str| !line.contains("File \"<string>\", line 1, in <module>") && !line.starts_with("shim=");
    let folder = format!("/{}/", exit.worker);
    log.lines().skip(2).filter(is_own).map(|line| line.replace(&folder, "/worker/")).collect()
}

fn kill(pid: &str) {
    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_fork_ends_as_a_process_that_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    let mut dirs = Vec::new();
    server.warm().await;
    for script in ENDS {
        let (plain, plain_log) = server.end(script, false).await;
        let (mut fork, mut fork_log) = server.end(script, true).await;
        // The worker after a crash is started by its command, and after three crashes all are: another server counts anew.
        let again = tempfile::tempdir().unwrap();
        if fork_log.starts_with("fork=False") {
            server = WarmServer::on(&again);
            server.warm().await;
            (fork, fork_log) = server.end(script, true).await;
        }
        dirs.push(again);
        assert!(
            plain_log.starts_with("fork=False") && fork_log.starts_with("fork=True"),
            "{script}: {fork_log}"
        );
        assert_eq!((fork.code, fork.signal), (plain.code, plain.signal), "{script}: {fork_log}");
        assert_eq!(comparable(&fork, &fork_log), comparable(&plain, &plain_log), "{script}");
    }
}

#[tokio::test]
async fn a_zygote_never_has_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    let secrets = ["horse-battery-staple", "correct-horse-battery"];
    let with_secrets = |mut spec: WorkerSpec| {
        spec.env.insert("FROM_THE_STORE".to_owned(), secrets[0].to_owned());
        spec.secret_variables = BTreeSet::from(["FROM_THE_STORE".to_owned()]);
        spec.env.insert("SERVICE_API_KEY".to_owned(), secrets[1].to_owned());
        spec.env.insert("CHOICE".to_owned(), "of no-secret".to_owned());
        spec
    };
    // All workers have the same variables, so that they are forks of one zygote.
    let script = "print(os.environ['FROM_THE_STORE'], os.environ['SERVICE_API_KEY'], flush=True)\nimport time\ntime.sleep(600)";
    let worker = server.first_fork(|server| with_secrets(server.spec(script))).await;
    server.server.prints(&worker, "staple correct").await;
    let zygote = server.zygote_of(&worker).await;
    let memory = memory_of(&zygote);
    let has = |text: &str| memory.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("of no-secret"), "the memory was read");
    for secret in secrets {
        assert!(!has(secret), "{secret}");
    }
    server.stop(&worker).await;
}

/// The writable memory of a process.
fn memory_of(pid: &str) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut bytes = Vec::new();
    for line in fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines() {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        let (from, to) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        if rights.starts_with("rw") {
            let mut part = vec![0; (number(to) - number(from)) as usize];
            if memory.read_exact_at(&mut part, number(from)).is_ok() {
                bytes.append(&mut part);
            }
        }
    }
    bytes
}

#[tokio::test]
async fn a_killed_zygote_is_made_anew_and_its_forks_live_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    server.warm().await;
    let script = "import time\ntime.sleep(600)";
    let (worker, zygote) = server.fork_and_zygote(server.spec(script)).await;
    kill(&zygote);
    eventually(|| (!is_alive(&zygote)).then_some(())).await;
    let shim = server.server.printed(&worker, "shim").await;
    assert!(is_alive(&shim));
    server.warm().await;
    server.server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
    let exited = server.server.exited().await;
    assert_eq!((exited.worker, exited.signal), (worker, Some(15)));
}

#[tokio::test]
async fn a_fork_outlives_the_server_and_its_zygote_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    server.warm().await;
    let script = "
import time
while not os.path.exists('go'):
    time.sleep(0.02)
sys.exit(8)";
    let (worker, zygote) = server.fork_and_zygote(server.spec(script)).await;
    drop(server);
    eventually(|| (!is_alive(&zygote)).then_some(())).await;
    let mut server = WarmServer::on(&dir);
    let adopted = server.server.adopt().await;
    assert!(adopted.iter().map(|one| &one.worker).eq([&worker]), "{adopted:?}");
    let log = server.server.log_path(&worker).unwrap();
    fs::write(log.with_file_name("cwd").join("go"), "").unwrap();
    let exited = server.server.exited().await;
    assert_eq!((exited.worker, exited.code), (worker, Some(8)));
}

#[tokio::test]
async fn what_a_fork_leaves_behind_ends_although_its_shim_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    server.warm().await;
    let script = "
import time
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    print('child=' + str(os.getpid()), flush=True)
time.sleep(600)";
    let (worker, _) = server.fork_and_zygote(server.spec(script)).await;
    let child = server.server.printed(&worker, "child").await;
    kill(&server.server.printed(&worker, "shim").await);
    let exited = server.server.exited().await;
    assert_eq!((exited.worker, exited.code, exited.signal), (worker, None, None));
    assert!(!is_alive(&child), "it has exited when the exit is reported");
}

#[tokio::test]
async fn many_forks_leave_nothing_in_the_zygote() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    server.warm().await;
    let forks = if std::env::var_os("LONGSHORE_LONG").is_some() { 1_000 } else { 40 };
    let (first, zygote) = server.fork_and_zygote(server.spec("import time\ntime.sleep(600)")).await;
    server.stop(&first).await;
    let uses = || {
        let status = fs::read_to_string(format!("/proc/{zygote}/status")).unwrap();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = rss.trim().trim_end_matches(" kB").parse().unwrap();
        let files = fs::read_dir(format!("/proc/{zygote}/fd")).unwrap().count();
        let children = fs::read_to_string(format!("/proc/{zygote}/task/{zygote}/children")).unwrap();
        (files, children.split_whitespace().count(), kib)
    };
    let before = uses();
    for _ in 0..forks {
        let (exit, log) = server.end("pass", true).await;
        assert_eq!((exit.code, log.starts_with("fork=True")), (Some(0), true), "{log}");
    }
    // It closes the files of the last fork after the worker has begun.
    let after = eventually(|| Some(uses()).filter(|after| (after.0, after.1) == (before.0, before.1))).await;
    assert!(after.2 < before.2 + 1_024, "{before:?} KiB before, {after:?} after");
}

#[tokio::test]
async fn random_numbers_of_forks_differ() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    server.warm().await;
    let script = "import random, uuid, tempfile\nprint(random.random(), uuid.uuid4(), next(tempfile._get_candidate_names()))";
    let (_, one) = server.end(script, true).await;
    let (_, other) = server.end(script, true).await;
    let words =
        |log: &str| log.lines().nth(2).unwrap().split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
    assert!(words(&one).is_disjoint(&words(&other)), "{one} {other}");
}

#[tokio::test]
async fn the_zygote_of_a_deleted_endpoint_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    server.warm().await;
    let (worker, zygote) = server.fork_and_zygote(server.spec("import time\ntime.sleep(600)")).await;
    server.stop(&worker).await;
    assert!(is_alive(&zygote));
    server.server.launcher.forget(&EndpointId::mint(7)).await.unwrap();
    eventually(|| (!is_alive(&zygote)).then_some(())).await;
}

#[tokio::test]
async fn the_zygote_that_was_used_least_recently_ends_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = WarmServer::on(&dir);
    let script = "import time\ntime.sleep(600)";
    let mut zygotes = Vec::new();
    // The server has at most two zygotes.
    for endpoint in [7, 8, 9] {
        server.server.endpoint = EndpointId::mint(endpoint);
        server.warm().await;
        let (worker, zygote) = server.fork_and_zygote(server.spec(script)).await;
        server.stop(&worker).await;
        zygotes.push(zygote);
    }
    eventually(|| (!is_alive(&zygotes[0])).then_some(())).await;
    assert!(is_alive(&zygotes[1]) && is_alive(&zygotes[2]));
}
