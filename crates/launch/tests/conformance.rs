//! The launchers of this crate keep the contract.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use longshore_launch::{Launcher, MemoryLauncher, ProcessLauncher, ShimCommand, WorkerSpec};
use longshore_launcher_suite::{Abilities, Rig, RigFuture, check, plain_spec};
use longshore_model::WorkerId;
use rustix::process::{Pid, Signal, kill_process};

const SHIM: &str = env!("CARGO_BIN_EXE_longshore-worker-shim");

/// Workers as entries of a list.
#[derive(Default)]
struct Memory(Mutex<Arc<MemoryLauncher>>);

impl Rig for Memory {
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn next_launcher(&self) -> Arc<dyn Launcher> {
        let mut present = self.0.lock().unwrap();
        *present = Arc::new(present.successor());
        Arc::clone(&*present) as Arc<dyn Launcher>
    }

    fn spec(&self, worker: &str, _script: &str) -> WorkerSpec {
        plain_spec(worker)
    }

    fn kill<'a>(&'a self, worker: &'a WorkerId) -> RigFuture<'a, ()> {
        Box::pin(async { self.0.lock().unwrap().exit(worker, None, Some(9), 1) })
    }

    fn remains(&self) -> RigFuture<'_, Vec<String>> {
        Box::pin(async { self.0.lock().unwrap().living().iter().map(ToString::to_string).collect() })
    }
}

#[tokio::test]
async fn the_launcher_in_memory_keeps_the_contract() {
    check(&Memory::default(), |_| {}).await;
}

/// The rig of the launcher of processes.
struct Processes(tempfile::TempDir);

impl Processes {
    fn live(&self) -> PathBuf {
        self.0.path().join("workers/live")
    }

    fn launcher(&self, folder: &str) -> Arc<dyn Launcher> {
        let shim = ShimCommand { program: SHIM.into(), arguments: vec![], shown_as: None };
        Arc::new(ProcessLauncher::new(self.0.path().join(folder), shim))
    }
}

impl Rig for Processes {
    fn abilities(&self) -> Abilities {
        Abilities { scripts: true, ..Abilities::default() }
    }

    fn next_launcher(&self) -> Arc<dyn Launcher> {
        self.launcher("workers")
    }

    fn other_launcher(&self) -> Option<Arc<dyn Launcher>> {
        Some(self.launcher("others"))
    }

    fn spec(&self, worker: &str, script: &str) -> WorkerSpec {
        let cmd = ["-c", script].map(str::to_owned).to_vec();
        WorkerSpec { entrypoint: vec!["sh".to_owned()], cmd, ..plain_spec(worker) }
    }

    fn kill<'a>(&'a self, worker: &'a WorkerId) -> RigFuture<'a, ()> {
        Box::pin(async {
            let note = fs::read(self.live().join(worker.as_str()).join("state.json")).unwrap();
            let note: serde_json::Value = serde_json::from_slice(&note).unwrap();
            let pid = note["process"]["pid"].as_i64().unwrap() as i32;
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        })
    }

    fn remains(&self) -> RigFuture<'_, Vec<String>> {
        let workers = fs::read_dir(self.live()).into_iter().flatten().flatten();
        let names = workers.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        Box::pin(async { names })
    }

    fn traces(&self) -> RigFuture<'_, String> {
        let arguments =
            fs::read_dir("/proc").unwrap().flatten().map(|process| process.path().join("cmdline"));
        let files = files(self.0.path()).into_iter().chain(arguments);
        let text = files.map(|path| fs::read(path).unwrap_or_default()).collect::<Vec<_>>().concat();
        Box::pin(async move { String::from_utf8_lossy(&text).into_owned() })
    }

    fn impossible(&self) -> Vec<(WorkerSpec, &'static str)> {
        let unknown = WorkerSpec { cmd: vec!["/no/such/program".to_owned()], ..plain_spec("unknown") };
        let none = plain_spec("no-command");
        let code = Some("0a".repeat(32).parse().unwrap());
        let code = WorkerSpec { code, workdir: Some("/no/such/folder".into()), ..self.spec("code", "true") };
        vec![(unknown, "/no/such/program"), (none, "`dockerStartCmd`"), (code, "/no/such/folder")]
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test]
async fn the_launcher_of_processes_keeps_the_contract() {
    let left_out = check(&Processes(tempfile::tempdir().unwrap()), |_| {}).await;
    assert!(
        left_out.iter().all(|name| {
            ["memory", "interrupted", "machine_is_away"].iter().any(|word| name.contains(word))
        }),
        "{left_out:?}"
    );
}
