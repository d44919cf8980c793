//! The process launcher with real child processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longshore_launch::{
    Born, CodeFolders, LaunchError, Launcher, Limits, ProcessLauncher, RotationLimits, RunningWorker,
    ShimCommand, WorkerExit, WorkerSpec,
};
use longshore_model::{CodeHash, ComputeType, EndpointId, Gpu, Millis, Placement, WorkerId};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

const DEADLINE: Duration = Duration::from_mins(1);
const GRACE: Duration = Duration::from_mins(1);

const SHIM: &str = env!("CARGO_BIN_EXE_longshore-worker-shim");

struct Server {
    launcher: ProcessLauncher,
    exits: UnboundedReceiver<WorkerExit>,
}

impl Server {
    fn on(dir: &TempDir) -> Self {
        Self::with_limits(dir, RotationLimits::default())
    }

    fn with_limits(dir: &TempDir, limits: RotationLimits) -> Self {
        Self::with(dir, ShimCommand { program: SHIM.into(), arguments: vec![], shown_as: None }, limits)
    }

    fn with(dir: &TempDir, shim: ShimCommand, limits: RotationLimits) -> Self {
        Self::of(ProcessLauncher::new(dir.path().join("workers"), shim).with_log_limits(limits))
    }

    /// A server whose workers end `after` its exit, unless another server starts.
    fn orphaning(dir: &TempDir, after: Option<Duration>) -> Self {
        let shim = ShimCommand { program: SHIM.into(), arguments: vec![], shown_as: None };
        Self::of(ProcessLauncher::new(dir.path().join("workers"), shim).with_orphans_ended_after(after))
    }

    fn of(launcher: ProcessLauncher) -> Self {
        let exits = launcher.exits().unwrap();
        Self { launcher, exits }
    }

    async fn start(&self, script: &str) -> WorkerId {
        let spec = sh(script);
        let id = spec.worker.clone();
        self.launcher.start(spec).await.unwrap();
        id
    }

    /// The log of a worker that was started with [`sh`].
    fn log_path(&self, worker: &WorkerId) -> Option<PathBuf> {
        self.launcher.worker_log(&EndpointId::mint(7), worker).map(|log| log.path)
    }

    async fn exited(&mut self) -> WorkerExit {
        tokio::time::timeout(DEADLINE, self.exits.recv()).await.expect("an exit in time").unwrap()
    }

    async fn adopt(&self) -> Vec<RunningWorker> {
        self.launcher.adopt().await.unwrap()
    }

    fn log(&self, worker: &WorkerId) -> String {
        self.log_path(worker).map(|path| fs::read_to_string(path).unwrap()).unwrap_or_default()
    }

    /// Waits until the worker printed something that contains `text`.
    async fn prints(&self, worker: &WorkerId, text: &str) -> String {
        eventually(|| Some(self.log(worker)).filter(|log| log.contains(text))).await
    }
}

fn a_placement() -> Placement {
    let gpu = Gpu { device: "GPU-1234".into(), type_id: "NVIDIA L4".into(), memory_mib: 23_034 };
    Placement { started_at: Millis(1_700_000_000_000), gpus: vec![gpu], unenforced_limits: None }
}

fn sh(script: &str) -> WorkerSpec {
    WorkerSpec {
        worker: "wk-1".parse().unwrap(),
        endpoint: EndpointId::mint(7),
        version: 3,
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        code: None,
        workdir: None,
        volumes: vec![],
        env: BTreeMap::new(),
        private_home: false,
        compute_type: ComputeType::Gpu,
        placement: a_placement(),
        limits: Limits::default(),
    }
}

async fn eventually<T>(mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "waited in vain");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn every_file(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(every_file(&path)) } else { files.push(path) }
    }
    files
}

#[tokio::test]
async fn an_exit_code_and_the_last_words_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("echo out; echo err >&2; exit 7").await;
    let exited = server.exited().await;
    assert_eq!(
        (exited.worker.clone(), exited.endpoint, exited.code, exited.signal),
        (worker.clone(), EndpointId::mint(7), Some(7), None)
    );
    assert_eq!(exited.log_tail, "out\nerr");
    assert_eq!(server.log(&worker), "out\nerr\n", "the log outlives the worker");
    assert!(server.exits.try_recv().is_err(), "reported once");
}

#[tokio::test]
async fn a_signal_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    server.start("kill -9 $$").await;
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.signal), (None, Some(9)));
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let spec = WorkerSpec { command: vec!["no-such-program".into()], ..sh("") };
    let LaunchError(text) = server.launcher.start(spec).await.unwrap_err();
    assert!(text.contains("cannot start `no-such-program`: No such file"), "{text}");
    let spec = WorkerSpec { workdir: Some("/no/such/folder".into()), ..sh("true") };
    let LaunchError(text) = server.launcher.start(spec).await.unwrap_err();
    assert!(text.contains("workdir /no/such/folder"), "{text}");
    // Nothing remains that would be adopted or prevent another start.
    server.start("sleep 600").await;
    server.launcher.stop(&"wk-1".parse().unwrap(), GRACE).await.unwrap();
    assert_eq!(Server::on(&dir).adopt().await, []);
}

#[tokio::test]
async fn a_stop_lets_the_worker_finish_within_its_grace() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done").await;
    server.prints(&worker, "ready").await;
    server.launcher.stop(&worker, GRACE).await.unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.signal), (Some(0), None));
    assert!(exited.log_tail.ends_with("bye"), "{}", exited.log_tail);
    server.launcher.stop(&worker, GRACE).await.unwrap();
}

#[tokio::test]
async fn a_stubborn_worker_is_killed_with_its_grandchildren() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let script = "trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo child=$!; wait; sleep 600";
    let worker = server.start(script).await;
    let log = server.prints(&worker, "child=").await;
    let grandchild = log.trim().rsplit_once('=').unwrap().1.to_owned();
    assert!(is_alive(&grandchild));
    server.launcher.stop(&worker, Duration::from_millis(100)).await.unwrap();
    assert!(!is_alive(&grandchild), "gone when `stop` returns");
    assert_eq!(server.exited().await.signal, Some(9));
}

#[tokio::test]
async fn what_a_worker_leaves_behind_ends_with_it_even_in_another_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("setsid sh -c 'echo child=$$; sleep 600' & sleep 600").await;
    let log = server.prints(&worker, "child=").await;
    let grandchild = log.trim().rsplit_once('=').unwrap().1.to_owned();
    server.launcher.stop(&worker, GRACE).await.unwrap();
    assert!(!is_alive(&grandchild));
    server.exited().await;
}

#[tokio::test]
async fn a_log_is_rotated() {
    let dir = tempfile::tempdir().unwrap();
    // The line is longer than one read of the pipe.
    let limits = RotationLimits { file_bytes_max: 20_000, files_max: 3 };
    let mut server = Server::with_limits(&dir, limits);
    let script = "i=0; while [ $i -lt 600 ]; do printf 'line %d %0150d\\n' $i 0; i=$((i+1)); done";
    let worker = server.start(script).await;
    let exited = server.exited().await;
    assert!(
        exited.log_tail.starts_with("line 580 ") && exited.log_tail.contains("\nline 599 "),
        "{}",
        exited.log_tail
    );
    let log = server.log_path(&worker).unwrap();
    for name in ["log", "log.1", "log.2"] {
        let bytes = fs::metadata(log.with_file_name(name)).unwrap().len();
        assert!((1..=20_000).contains(&bytes), "{name} has {bytes} bytes");
    }
    assert!(!log.with_file_name("log.3").exists());
}

#[tokio::test]
async fn a_worker_outlives_the_server_and_is_adopted() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 5").await;
    server.prints(&worker, "one").await;
    drop(server);

    let mut server = Server::on(&dir);
    let present = RunningWorker {
        worker: worker.clone(),
        endpoint: EndpointId::mint(7),
        version: 3,
        is_stopping: false,
        placement: a_placement(),
    };
    assert_eq!(server.adopt().await, [present]);
    fs::write(server.log_path(&worker).unwrap().with_file_name("cwd").join("go"), "").unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.log_tail.as_str()), (Some(5), "one\ntwo"));
    assert_eq!(exited.placement, a_placement());
}

#[tokio::test]
async fn an_adopted_worker_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("sleep 600").await;
    drop(server);
    let mut server = Server::on(&dir);
    assert_eq!(server.adopt().await.len(), 1);
    server.launcher.stop(&worker, GRACE).await.unwrap();
    assert_eq!(server.exited().await.signal, Some(15));
    drop(server);
    assert_eq!(Server::on(&dir).adopt().await, [], "it was reported and is forgotten");
}

#[tokio::test]
async fn a_stop_that_the_server_did_not_see_through_is_seen_through_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("trap '' TERM; echo deaf; while :; do sleep 0.05; done").await;
    server.prints(&worker, "deaf").await;
    let hours = Duration::from_hours(1);
    let cut_off = tokio::time::timeout(Duration::from_millis(50), server.launcher.stop(&worker, hours)).await;
    assert!(cut_off.is_err(), "it does not listen");
    drop(server);
    let mut server = Server::on(&dir);
    assert!(matches!(&server.adopt().await[..], [RunningWorker { is_stopping: true, .. }]));
    let exited = server.exited().await;
    assert_eq!((exited.worker, exited.signal, exited.expected), (worker, Some(9), true));
}

#[tokio::test]
async fn a_death_while_the_server_was_away_is_reported_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("echo last words; while [ ! -e go ]; do sleep 0.02; done; exit 9").await;
    let folder = server.log_path(&worker).unwrap().with_file_name("");
    drop(server);
    fs::write(folder.join("cwd/go"), "").unwrap();
    eventually(|| folder.join("exit.json").exists().then_some(())).await;
    // The shim exits after its last note.
    let mut server = Server::on(&dir);
    server.adopt().await;
    let exited = server.exited().await;
    assert_eq!((exited.worker, exited.code, exited.log_tail.as_str()), (worker, Some(9), "last words"));
}

#[tokio::test]
async fn a_worker_without_its_shim_is_lost_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("echo pid=$$; sleep 600").await;
    let log = server.prints(&worker, "pid=").await;
    let pid = log.trim().rsplit_once('=').unwrap().1.to_owned();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let shim: i32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(shim).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.signal), (None, None));
    assert!(!is_alive(&pid));
}

/// A worker that leaves a process of another session behind, whose parent has ended.
const LEAVES_A_DAEMON: &str =
    "setsid sh -c '(setsid sh -c \"echo child=\\$\\$; exec sleep 600\" &)'; sleep 600";

async fn daemon_and_shim(server: &Server, worker: &WorkerId) -> (String, rustix::process::Pid) {
    let log = server.prints(worker, "child=").await;
    let child = log.trim().rsplit_once('=').unwrap().1.to_owned();
    let state = fs::read(server.log_path(worker).unwrap().with_file_name("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let shim = state["shim"]["pid"].as_i64().unwrap() as i32;
    (child, rustix::process::Pid::from_raw(shim).unwrap())
}

#[tokio::test]
async fn what_a_worker_left_in_another_session_ends_although_its_shim_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start(LEAVES_A_DAEMON).await;
    let (child, shim) = daemon_and_shim(&server, &worker).await;
    let mut stranger = std::process::Command::new("setsid")
        .args(["sleep", "600"])
        .env("LONGSHORE_WORKER_MARK", "1-2-another")
        .spawn()
        .unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.worker, exited.code, exited.signal), (worker, None, None));
    assert!(!is_alive(&child), "the child has exited when the exit is reported");
    assert!(stranger.try_wait().unwrap().is_none(), "a process of another parent goes on");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn the_next_server_ends_what_a_killed_shim_left() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start(LEAVES_A_DAEMON).await;
    let (child, shim) = daemon_and_shim(&server, &worker).await;
    drop(server);
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    eventually(|| (!is_alive(&shim.to_string())).then_some(())).await;
    let mut server = Server::on(&dir);
    assert_eq!(server.adopt().await, []);
    assert_eq!(server.exited().await.worker, worker);
    assert!(!is_alive(&child));
}

#[tokio::test]
async fn a_worker_whose_server_is_gone_is_ended_by_its_shim() {
    let dir = tempfile::tempdir().unwrap();
    let soon = Duration::from_millis(200);
    let server = Server::orphaning(&dir, Some(soon));
    let worker = server.start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done").await;
    let log = server.prints(&worker, "ready").await;
    assert!(!log.contains("bye"));
    let folder = server.log_path(&worker).unwrap().with_file_name("");
    drop(server);
    eventually(|| folder.join("exit.json").exists().then_some(())).await;
    let mut server = Server::on(&dir);
    assert_eq!(server.adopt().await, []);
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.expected), (Some(0), true), "no retry is counted");
    let lines: Vec<&str> = exited.log_tail.lines().collect();
    // In between the shell may say that its child was terminated.
    assert_eq!(lines[..2], ["ready", "[longshore] the server has been away for 0 s: ending the worker"]);
    assert_eq!(lines.last(), Some(&"bye"));
}

#[tokio::test]
async fn a_worker_that_heeds_no_sigterm_does_not_outlive_its_server_either() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::orphaning(&dir, Some(Duration::from_millis(100)));
    let worker = server.start("trap '' TERM; echo pid=$$; while :; do sleep 0.05; done").await;
    let log = server.prints(&worker, "pid=").await;
    let pid = log.trim().rsplit_once('=').unwrap().1.to_owned();
    drop(server);
    eventually(|| (!is_alive(&pid)).then_some(())).await;
}

#[tokio::test]
async fn repeated_lines_are_folded_while_the_server_is_away_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::orphaning(&dir, None);
    let script = "n=0; while :; do echo polling; echo failed; n=$((n+1)); echo step $n; sleep 0.001; done";
    let worker = server.start(script).await;
    server.prints(&worker, "step 50").await;
    let path = server.log_path(&worker).unwrap();
    let log = || fs::read_to_string(&path).unwrap();
    assert!(log().matches("polling\n").count() >= 50, "all is written while the server is there");
    drop(server);
    let steps = |log: &str| log.matches("step ").count();
    // The shim has checked by then: it left out fewer lines than were printed.
    let left_out = |log: &str| steps(log).saturating_sub(log.matches("polling\n").count());
    eventually(|| (left_out(&log()) > 200).then_some(())).await;
    let server = Server::on(&dir);
    server.adopt().await;
    let log = eventually(|| Some(log()).filter(|log| log.contains(" more times: polling\n"))).await;
    assert!(
        log.contains(" more times: failed\n") && log.contains("step 99\nstep 100\n") == log.contains("x\n")
    );
    server.launcher.stop(&worker, GRACE).await.unwrap();
}

#[tokio::test]
async fn secrets_are_not_on_disk_nor_in_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let secret = "correct-horse-battery";
    let mut spec = sh("[ \"$TOKEN\" = correct-horse-battery ] || exit 1; echo ready; sleep 600");
    spec.command[2] = spec.command[2].replace(secret, &["correct-horse", "-battery"].join("\"\""));
    spec.env.insert("TOKEN".into(), secret.into());
    assert!(!format!("{spec:?}").contains(secret));
    let worker = spec.worker.clone();
    server.launcher.start(spec).await.unwrap();
    server.prints(&worker, "ready").await;
    let files = every_file(dir.path());
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(secret), "{}", file.display());
    }
    server.launcher.stop(&worker, GRACE).await.unwrap();
}

#[tokio::test]
async fn a_workdir_is_seen_but_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let workdir = dir.path().join("handler");
    fs::create_dir(&workdir).unwrap();
    fs::write(workdir.join("model.bin"), "weights").unwrap();
    fs::write(workdir.join("start.sh"), "cat model.bin; echo; ls -A; echo state > .runpod_jobs.pkl").unwrap();
    fs::write(workdir.join(".runpod_jobs.pkl"), "another worker's").unwrap();
    let mut server = Server::on(&dir);
    let spec = WorkerSpec {
        command: ["sh", "./start.sh"].map(str::to_owned).to_vec(),
        workdir: Some(workdir.clone()),
        ..sh("")
    };
    server.launcher.start(spec).await.unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.log_tail.as_str()), (Some(0), "weights\nmodel.bin\nstart.sh"));
    assert_eq!(fs::read_to_string(workdir.join(".runpod_jobs.pkl")).unwrap(), "another worker's");
}

#[tokio::test]
async fn input_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    server.start("cat; echo end").await;
    assert_eq!(server.exited().await.log_tail, "end");
}

#[tokio::test]
async fn the_servers_settings_and_the_sdks_configuration_stay_out_of_sight() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    fs::create_dir_all(home.join(".runpod")).unwrap();
    fs::create_dir_all(home.join(".cache")).unwrap();
    let arguments = ["LONGSHORE_ADMIN_KEY=x".into(), format!("HOME={}", home.display()), SHIM.into()];
    let shim =
        ShimCommand { program: "env".into(), arguments: arguments.map(Into::into).to_vec(), shown_as: None };
    let mut server = Server::with(&dir, shim, RotationLimits::default());
    let script = "echo key=$LONGSHORE_ADMIN_KEY; ls -A $HOME";
    server.launcher.start(WorkerSpec { private_home: true, ..sh(script) }).await.unwrap();
    assert_eq!(server.exited().await.log_tail, "key=\n.cache");
}

#[tokio::test]
async fn a_log_is_found_by_its_own_endpoint_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let (own, other) = (EndpointId::mint(7), EndpointId::mint(8));
    let worker = server.start("echo hello; while [ ! -e go ]; do sleep 0.02; done").await;
    server.prints(&worker, "hello").await;
    let live = server.launcher.worker_log(&own, &worker).unwrap();
    assert!(live.is_live);
    assert_eq!(server.launcher.worker_log(&other, &worker), None);
    assert_eq!(
        (server.launcher.worker_logs(), server.launcher.ended_workers(&own)),
        (vec![live.clone()], vec![])
    );

    fs::write(live.path.with_file_name("cwd").join("go"), "").unwrap();
    server.exited().await;
    let ended = server.launcher.worker_log(&own, &worker).unwrap();
    assert!(!ended.is_live);
    assert_eq!(fs::read_to_string(&ended.path).unwrap(), "hello\n");
    assert_eq!(server.launcher.worker_log(&other, &worker), None);
    assert_eq!(server.launcher.worker_logs(), [ended]);
    assert_eq!(
        (server.launcher.ended_workers(&own), server.launcher.ended_workers(&other)),
        (vec![worker], vec![])
    );
}

#[tokio::test]
async fn a_worker_sees_the_gpus_of_its_placement() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    server.start("echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER").await;
    assert_eq!(server.exited().await.log_tail, "GPU-1234 PCI_BUS_ID");
}

#[tokio::test]
async fn only_the_logs_of_the_last_workers_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    for n in 0..12 {
        let spec = WorkerSpec { worker: format!("wk-{n}").parse().unwrap(), ..sh("echo hello") };
        server.launcher.start(spec).await.unwrap();
        server.exited().await;
    }
    let kept = |n: u32| server.log_path(&format!("wk-{n}").parse().unwrap()).is_some();
    assert_eq!((0..12).map(kept).collect::<Vec<_>>(), [[false; 2].as_slice(), &[true; 10]].concat());
    for _ in 0..2 {
        server.launcher.forget(&EndpointId::mint(7)).await.unwrap();
    }
    assert!(!(0..12).any(kept), "nothing is kept of a deleted endpoint");
}

#[tokio::test]
async fn an_unmodified_python_program_finds_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let workdir = dir.path().join("handler");
    fs::create_dir_all(workdir.join("package")).unwrap();
    fs::write(workdir.join("tools.py"), "WORD = 'hello'").unwrap();
    fs::write(workdir.join("package/__init__.py"), "from tools import WORD").unwrap();
    fs::write(workdir.join("data.txt"), "data").unwrap();
    fs::write(workdir.join("handler.py"), "import package; print(package.WORD, open('data.txt').read())")
        .unwrap();
    let mut server = Server::on(&dir);
    for command in [["python3", "handler.py"].as_slice(), &["python3", "-m", "handler"]] {
        let command = command.iter().map(ToString::to_string).collect();
        let spec = WorkerSpec { command, workdir: Some(workdir.clone()), ..sh("") };
        server.launcher.start(spec).await.unwrap();
        assert_eq!(server.exited().await.log_tail, "hello data");
    }
}

fn launcher(dir: &Path) -> ProcessLauncher {
    let shim = ShimCommand { program: SHIM.into(), arguments: vec![], shown_as: None };
    ProcessLauncher::new(dir.to_owned(), shim)
}

async fn next(exits: &mut UnboundedReceiver<WorkerExit>) -> WorkerExit {
    tokio::time::timeout(DEADLINE, exits.recv()).await.expect("an exit in time").unwrap()
}

#[tokio::test]
async fn deployed_code_is_found_where_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let hash = "c0".repeat(32);
    let put = |place: &str, text: &str| {
        let folder = dir.path().join(place).join("code/hello").join(&hash);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("word"), text).unwrap();
    };
    put("here", "original");
    put("there", "copy");
    for (place, word) in [("here", "original"), ("there", "copy")] {
        let folders = CodeFolders::at(&dir.path().join(place).join("code"));
        let runner = ["sh", "-c", "cat word \"$0/word\""].map(str::to_owned).to_vec();
        let launcher = launcher(&dir.path().join(place)).with_code(folders, runner);
        let code: CodeHash = hash.parse().unwrap();
        assert!(launcher.finds_code(&code));
        let mut exits = launcher.exits().unwrap();
        launcher.start(WorkerSpec { command: Vec::new(), code: Some(code.clone()), ..sh("") }).await.unwrap();
        assert_eq!(next(&mut exits).await.log_tail, [word, word].concat(), "{place}");
        let own = sh("echo mine; cat word");
        launcher.start(WorkerSpec { code: Some(code), ..own }).await.unwrap();
        assert_eq!(next(&mut exits).await.log_tail, format!("mine\n{word}"), "{place}");
        let other: CodeHash = "0".repeat(64).parse().unwrap();
        assert!(!launcher.finds_code(&other));
        let error = launcher.start(WorkerSpec { code: Some(other), ..sh("true") }).await.unwrap_err();
        assert!(error.to_string().contains("deploy it again"), "{error}");
    }
}

#[tokio::test]
async fn a_copied_folder_of_a_worker_is_no_worker() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    let first = launcher(&original);
    let spec = sh("exec sleep 1000");
    first.start(spec.clone()).await.unwrap();
    drop(first);
    let copy = dir.path().join("copy");
    let folder = |at: &Path| at.join("live").join(spec.worker.as_str());
    fs::create_dir_all(folder(&copy)).unwrap();
    fs::copy(folder(&original).join("state.json"), folder(&copy).join("state.json")).unwrap();

    let second = launcher(&copy);
    assert_eq!(second.adopt().await.unwrap(), []);
    assert!(!folder(&copy).exists());

    let moved = dir.path().join("moved");
    fs::rename(&original, &moved).unwrap();
    let third = launcher(&moved);
    let mut exits = third.exits().unwrap();
    assert_eq!(third.adopt().await.unwrap().len(), 1, "it lives, and is the moved folder's");
    third.stop(&spec.worker, Duration::from_secs(5)).await.unwrap();
    next(&mut exits).await;
}

/// Waits until the clock by which the kernel dates processes has advanced. Its ticks have 10 ms, and processes that started
/// within the first or the last tick of a span are not killed.
async fn wait_for_ticks() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn what_a_stopped_job_left_ends_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    // The worker starts a process for each file: in its own group, or in a session of its own.
    let script = "
        begin() { while [ ! -e $1 ]; do sleep 0.02; done; }
        sleep 600 & echo before=$!
        begin job; sleep 600 & echo plain=$!
        setsid sh -c '(setsid sh -c \"sleep 599 & echo daemon=\\$\\$; wait\" &)'
        begin next; sleep 600 & echo next=$!
        begin end";
    let worker = server.start(script).await;
    let cwd = server.log_path(&worker).unwrap().with_file_name("cwd");
    let pid = async |name: &str| {
        let log = server.prints(&worker, &format!("{name}=")).await;
        let line = log.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
        line.to_owned()
    };
    let before = pid("before").await;
    wait_for_ticks().await;
    let since = Instant::now();
    wait_for_ticks().await;
    fs::write(cwd.join("job"), "").unwrap();
    let left = [pid("plain").await, pid("daemon").await];
    wait_for_ticks().await;
    let until = Instant::now();
    wait_for_ticks().await;
    fs::write(cwd.join("next"), "").unwrap();
    let next = pid("next").await;
    let as_of = Instant::now();
    let born = Born { since_ago: as_of - since, until_ago: as_of - until, as_of };
    let ended = server.launcher.end_leftovers(&worker, born, Duration::from_millis(100)).await.unwrap();
    assert!(ended >= 3, "with the daemon's child: {ended}");
    assert!(left.iter().all(|pid| !is_alive(pid)), "{left:?}");
    assert!(is_alive(&before) && is_alive(&next), "what began before and after lives");
    let again = server.launcher.end_leftovers(&worker, born, Duration::ZERO).await.unwrap();
    assert_eq!(again, 0);
    server.launcher.stop(&worker, GRACE).await.unwrap();
}
