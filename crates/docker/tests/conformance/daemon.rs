//! A Docker daemon of the tests' own, and images made of this computer's files: nothing is downloaded, and no other daemon
//! is touched.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable by which `cargo xtask test` says why no daemon can run; empty: one can.
const REASON: &str = "LONGSHORE_TESTS_WITHOUT_DOCKER";
/// How long the daemon may take to answer.
const START_WAIT: Duration = Duration::from_mins(1);

/// Why no daemon can run here; `None` if one can.
pub fn reason_not_to_run() -> Option<String> {
    if let Ok(reason) = std::env::var(REASON) {
        return Some(reason).filter(|reason| !reason.is_empty());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("a Docker daemon needs root".to_owned());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &str| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file());
    let missing = ["dockerd", "docker"].into_iter().find(|program| !has(program));
    missing.map(|program| format!("{program} is not installed"))
}

/// A daemon with folders and a socket of its own, without networks: containers use the host's or none.
pub struct TestDaemon {
    folder: tempfile::TempDir,
    process: Child,
}

impl TestDaemon {
    /// Starts a daemon; an error says why it does not run.
    pub fn start() -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("ls-docker-").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("dockerd")
            .arg(format!("--host=unix://{}", path("docker.sock")))
            .arg(format!("--data-root={}", path("data")))
            .arg(format!("--exec-root={}", path("exec")))
            .arg(format!("--pidfile={}", path("pid")))
            .args(["--bridge=none", "--iptables=false", "--ip-forward=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut daemon = Self { folder, process };
        let begun = Instant::now();
        while !daemon.command(&["version"]).output().unwrap().status.success() {
            if daemon.process.try_wait().unwrap().is_some() || begun.elapsed() > START_WAIT {
                let log = fs::read_to_string(daemon.folder.path().join("log")).unwrap_or_default();
                return Err(log.lines().last().unwrap_or("it does not answer").to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.arg(format!("--host=unix://{}", self.socket().display())).args(words);
        command
    }

    /// Runs the `docker` program. Returns what it printed.
    pub fn docker(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes an image with a shell and `sleep`. `options`: those of `docker import`.
    pub fn make_image(&self, name: &str, options: &[&str]) {
        self.read(&[&["import"], options, &["-", name]].concat(), &root_filesystem(self.folder.path()));
    }

    /// Makes an image of one empty file for the processors `arm64`.
    pub fn make_foreign_image(&self, name: &str) {
        let script = r#"
            set -e
            mkdir -p "$1/layer" "$1/image" && : > "$1/layer/empty"
            tar -C "$1/layer" -cf "$1/image/layer.tar" .
            sum=$(sha256sum < "$1/image/layer.tar" | cut -d' ' -f1)
            echo '{"architecture":"arm64","os":"linux","config":{"Entrypoint":["/empty"]},
                "rootfs":{"type":"layers","diff_ids":["sha256:'$sum'"]}}' > "$1/image/config.json"
            echo '[{"Config":"config.json","RepoTags":["'$2'"],"Layers":["layer.tar"]}]' > "$1/image/manifest.json"
            tar -C "$1/image" -cf - ."#;
        let archive = output_of(script, &[&self.folder.path().join("foreign").display().to_string(), name]);
        self.read(&["load"], &archive);
    }

    /// Runs the `docker` program with this input.
    fn read(&self, words: &[&str], input: &[u8]) {
        let mut reading = self.command(words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        reading.stdin.take().unwrap().write_all(input).unwrap();
        assert!(reading.wait().unwrap().success(), "{words:?}");
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        let containers = self.command(&["ps", "-aq"]).output().map(|it| it.stdout).unwrap_or_default();
        for container in String::from_utf8_lossy(&containers).lines() {
            let _ = self.command(&["rm", "-f", container]).output();
        }
        if let Some(pid) = rustix::process::Pid::from_raw(self.process.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// The files of an image as a tar archive.
fn root_filesystem(scratch: &Path) -> Vec<u8> {
    let root = scratch.join("root");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("tmp")).unwrap();
    let script = r#"
        set -e
        for program in sh sleep cat mkfifo rm; do
            path=$(readlink -f "$(command -v $program)")
            mkdir -p "$1/bin" && cp -L "$path" "$1/bin/$program"
            for library in $(ldd "$path" | grep -o '/[^ )]*'); do
                mkdir -p "$1$(dirname "$library")" && cp -L "$library" "$1$library"
            done
        done
        tar -C "$1" -cf - ."#;
    output_of(script, &[&root.display().to_string()])
}

/// What a shell script prints.
fn output_of(script: &str, arguments: &[&str]) -> Vec<u8> {
    let made = Command::new("sh").args(["-c", script, "sh"]).args(arguments).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    made.stdout
}
