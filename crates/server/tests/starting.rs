//! The program as a process: start, errors at the start, and stop.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(1);

fn longshore(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"LONGSHORE_") {
            command.env_remove(name);
        }
    }
    command
}

/// A server that has printed its address.
struct Server {
    child: Option<Child>,
    port: u16,
}

impl Server {
    fn start(dir: &Path) -> Self {
        let port_file = dir.join("port");
        let _ = std::fs::remove_file(&port_file);
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data", "--port-file", "port"];
        let mut child = longshore(&arguments, dir).spawn().unwrap();
        let began = Instant::now();
        let port = loop {
            if let Ok(text) = std::fs::read_to_string(&port_file) {
                break text.trim().parse().unwrap();
            }
            assert!(child.try_wait().unwrap().is_none(), "the server exited");
            assert!(began.elapsed() < PATIENCE, "the server does not listen");
            std::thread::yield_now();
        };
        Self { child: Some(child), port }
    }

    /// Sends SIGTERM. Returns the output and the time until the exit.
    fn terminate(mut self) -> (Output, Duration) {
        let child = self.child.take().unwrap();
        let began = Instant::now();
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        (child.wait_with_output().unwrap(), began.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn refusal(arguments: &[&str], dir: &Path) -> String {
    let output = longshore(arguments, dir).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("longshore: "), "{said}");
    said
}

#[test]
fn the_first_start_shows_a_key_and_the_second_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let first = Server::start(dir.path());
    let address = format!("listening on http://127.0.0.1:{}\n", first.port);
    let (output, took) = first.terminate();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(said.contains(&address), "{said}");
    assert!(said.contains("stop with Ctrl-C"), "{said}");
    let key = said.lines().find_map(|line| line.strip_prefix("admin key: ")).unwrap();
    assert!(key.starts_with("ls_") && key.len() > 64, "{key}");
    let (output, _) = Server::start(dir.path()).terminate();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("listening on") && !said.contains("admin key"), "{said}");
}

/// Sends `request` from before the server listens until it answers. Returns the status line.
fn first_answer(address: SocketAddr, request: &str) -> String {
    let began = Instant::now();
    let mut connection = loop {
        match TcpStream::connect(address) {
            Ok(connection) => break connection,
            Err(_) => assert!(began.elapsed() < PATIENCE, "the server does not listen"),
        }
    };
    connection.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(connection).read_line(&mut line).unwrap();
    line
}

#[test]
fn the_very_first_request_finds_the_operators_key() {
    const KEY: &str = "a-key-of-the-operator";
    let dir = tempfile::tempdir().unwrap();
    // The port is freed immediately, so that the server can be told where to listen. No other test listens on this
    // address, so the port stays free.
    let address = TcpListener::bind("127.0.0.3:0").unwrap().local_addr().unwrap();
    let child = longshore(&["serve", "--listen", &address.to_string(), "--data-dir", "data"], dir.path())
        .env("LONGSHORE_ADMIN_KEY", KEY)
        .spawn()
        .unwrap();
    let _server = Server { child: Some(child), port: address.port() };
    let request = format!("GET /v1/endpoints HTTP/1.1\r\nhost: x\r\nauthorization: {KEY}\r\n\r\n");
    assert_eq!(first_answer(address, &request), "HTTP/1.1 200 OK\r\n");
}

#[test]
fn what_keeps_it_from_starting_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert!(refusal(&["serve", "--listen", &address], dir.path()).contains("is in use by another program"));
    let server = Server::start(dir.path());
    let locked = refusal(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"], dir.path());
    assert!(locked.contains("in use by another server"), "{locked}");
    drop(server);
    assert!(refusal(&["serve", "--listen", "8080"], dir.path()).contains("is not an address"));
    assert!(refusal(&["serve", "--config", "none.toml"], dir.path()).contains("cannot read the settings"));
    std::fs::write(dir.path().join("c.toml"), "listn = \"127.0.0.1:0\"\n").unwrap();
    assert!(refusal(&["serve", "--config", "c.toml"], dir.path()).contains("did you mean `listen`?"));
    assert!(refusal(&["serve", "--log-level", "l=o=u=d"], dir.path()).contains("`log_level`"));
}

#[test]
fn a_folder_without_a_handler_is_told_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let output = longshore(&["dev", "."], dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is no handler.py"), "{said}");
}
