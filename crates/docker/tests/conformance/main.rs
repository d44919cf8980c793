//! The launcher of containers keeps the contract, with a real daemon.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod daemon;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use daemon::{TestDaemon, reason_not_to_run};
use longshore_docker::{DockerLauncher, DockerSettings, PullPolicy};
use longshore_launch::{Launcher, WorkerSpec};
use longshore_launcher_suite::{Abilities, Rig, RigFuture, check, plain_spec};
use longshore_model::{Placement, WorkerId};

const IMAGE: &str = "suite:1";
/// An image for the processors of other computers.
const FOREIGN: &str = "foreign:1";
/// An image without a command.
const MUTE: &str = "mute:1";
/// An address at which no registry is.
const NO_REGISTRY: &str = "127.0.0.1:1/none:1";

/// Workers as containers of a daemon.
struct Containers {
    daemon: TestDaemon,
    data: tempfile::TempDir,
}

impl Containers {
    fn launcher(&self, folder: &str) -> Arc<dyn Launcher> {
        let settings = DockerSettings {
            socket: self.daemon.socket(),
            server_url: None,
            network: "host".to_owned(),
            pull: PullPolicy::Missing,
            pull_stall: Duration::from_mins(1),
            cap_drop: vec!["NET_RAW".to_owned()],
            base_image: None,
            images_bytes_max: None,
            orphan_interval: Duration::from_secs(1),
        };
        let path = |name: &str| self.data.path().join(name);
        Arc::new(DockerLauncher::new(&path(folder), &path("volumes"), settings))
    }

    fn names(&self) -> Vec<String> {
        let listed = self.daemon.docker(&["ps", "--all", "--format", "{{.Names}}"]);
        listed.lines().map(str::to_owned).collect()
    }
}

impl Rig for Containers {
    fn abilities(&self) -> Abilities {
        let info = self.daemon.docker(&["info", "--format", "{{.MemoryLimit}}"]);
        Abilities { scripts: true, memory: info.trim() == "true", stages: true, ..Abilities::default() }
    }

    fn next_launcher(&self) -> Arc<dyn Launcher> {
        self.launcher("containers")
    }

    fn other_launcher(&self) -> Option<Arc<dyn Launcher>> {
        Some(self.launcher("others"))
    }

    fn spec(&self, worker: &str, script: &str) -> WorkerSpec {
        let spec = plain_spec(worker);
        // This computer has no GPU to give.
        let placement = Placement { gpus: vec![], ..spec.placement };
        let (image, cmd) = (IMAGE.to_owned(), ["-c", script].map(str::to_owned).to_vec());
        WorkerSpec { image, cmd, placement, ..spec }
    }

    fn kill<'a>(&'a self, worker: &'a WorkerId) -> RigFuture<'a, ()> {
        let suffix = format!("-{worker}");
        let name = self.names().into_iter().find(|name| name.ends_with(&suffix)).unwrap();
        self.daemon.docker(&["kill", &name]);
        Box::pin(async {})
    }

    fn remains(&self) -> RigFuture<'_, Vec<String>> {
        let mut remains = self.names();
        let live =
            std::fs::read_dir(self.data.path().join("containers/live")).into_iter().flatten().flatten();
        remains.extend(live.map(|entry| entry.path().display().to_string()));
        Box::pin(async { remains })
    }

    fn traces(&self) -> RigFuture<'_, String> {
        let names = self.names();
        let words = ["inspect", "--format", "{{.Name}} {{.Config.Labels}} {{.Args}}"].into_iter();
        let labels = self.daemon.docker(&words.chain(names.iter().map(String::as_str)).collect::<Vec<_>>());
        let text = labels + &texts(self.data.path());
        Box::pin(async { text })
    }

    fn impossible(&self) -> Vec<(WorkerSpec, &'static str)> {
        let of = |worker: &str, image: &str| WorkerSpec { image: image.to_owned(), ..self.spec(worker, ":") };
        let no_program = vec!["/no/such/program".to_owned()];
        let code = Some("0a".repeat(32).parse().unwrap());
        vec![
            (of("unreachable", NO_REGISTRY), "could not fetch it"),
            (of("foreign", FOREIGN), "is for arm64 processors"),
            (of("unnamed", ""), "set its `imageName`"),
            (WorkerSpec { cmd: vec![], ..of("mute", MUTE) }, "set `dockerStartCmd`"),
            (WorkerSpec { entrypoint: no_program, ..of("unknown", IMAGE) }, "command not found in the image"),
            (WorkerSpec { code, ..of("code", IMAGE) }, "`base_image` in [docker]"),
        ]
    }
}

/// The texts of all files below a folder.
fn texts(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    entries.map(|it| it.path()).map(|it| if it.is_dir() { texts(&it) } else { text(&it) }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_launcher_of_containers_keeps_the_contract() {
    if let Some(reason) = reason_not_to_run() {
        return eprintln!("NOT RUN: the contract of a launcher with containers: {reason}");
    }
    let daemon = match TestDaemon::start() {
        Ok(daemon) => daemon,
        Err(reason) => return eprintln!("NOT RUN: the contract of a launcher with containers: {reason}"),
    };
    daemon.make_image(IMAGE, &["--change=ENTRYPOINT [\"/bin/sh\"]"]);
    daemon.make_foreign_image(FOREIGN);
    daemon.make_image(MUTE, &[]);
    let rig = Containers { daemon, data: tempfile::tempdir().unwrap() };
    let left_out = check(&rig, |case| eprintln!("case {case}")).await;
    // Not everywhere may a daemon limit memory. Its computer does not go away from the server's.
    let may_be_left_out = |name: &str| ["memory", "machine_is_away"].iter().any(|word| name.contains(word));
    assert!(left_out.iter().all(|name| may_be_left_out(name)), "{left_out:?}");
}
