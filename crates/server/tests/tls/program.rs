//! The program as a server and as a client.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a condition; then the test fails.
pub const DEADLINE: Duration = Duration::from_mins(1);
/// The key that permits everything at the test's servers.
pub const KEY: &str = "a-key-of-the-operator";

/// Returns the program with these arguments, in `dir`, in an environment without settings and authorities.
pub fn longshore(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(arguments).current_dir(dir).env("XDG_CONFIG_HOME", dir.join("config"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"LONGSHORE_") || name_bytes.starts_with(b"SSL_CERT_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command of a client with [`KEY`] and these variables. Returns its exit code and what it said.
pub fn client(arguments: &[&str], variables: &[(&str, &str)], dir: &Path) -> (Option<i32>, String) {
    let mut command = longshore(arguments, dir);
    command.env("LONGSHORE_API_KEY", KEY).envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    /// Starts a server with these flags and settings, with its data in a directory of its own below `dir` and its log
    /// lines in the file `NAME.log` there.
    pub fn start(name: &str, flags: &[&str], variables: &[(&str, &str)], dir: &Path) -> Self {
        let (data, port_file) = (format!("{name}-data"), format!("{name}-port"));
        let own =
            ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.as_str(), "--port-file", &port_file];
        let mut command = longshore(&[&own, flags].concat(), dir);
        command.stdout(Stdio::null()).stderr(File::create(dir.join(format!("{name}.log"))).unwrap());
        command.env("LONGSHORE_ADMIN_KEY", KEY).envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        let port = loop {
            if let Ok(text) = std::fs::read_to_string(dir.join(&port_file)) {
                break text.trim().parse().unwrap();
            }
            assert!(child.try_wait().unwrap().is_none(), "the server exited");
            assert!(began.elapsed() < DEADLINE, "the server does not listen");
            std::thread::yield_now();
        };
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
