//! The server of a baseline: a child process of this program, on the processors of the measured server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{durable, echo, http_worker, loopback};
use crate::cores::Cores;

/// A running baseline server. Stopped on drop.
pub struct Baseline {
    child: Child,
    address: SocketAddr,
}

impl Baseline {
    /// Starts `echo`, `durable-echo` or `loopback`. Its files are created in `folder`.
    pub fn start(which: &str, cores: Cores, folder: &Path) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut command = Command::new(program);
        command.args(["floor", which]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            cores.spawn_measured(&mut command).map_err(|error| format!("cannot start {which}: {error}"))?;
        let mut line = String::new();
        let said = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let port: Option<u16> = said.and_then(Result::ok).and_then(|_| line.trim().parse().ok());
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or_default()).into();
        let floor = Self { child, address };
        if port.is_none() { Err(format!("{which} did not print its port")) } else { Ok(floor) }
    }

    /// The loopback address that the baseline listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the child's server until the parent exits.
pub fn serve(which: &str) -> Result<(), String> {
    if which == "http-worker" {
        return http_worker::serve();
    }
    // The writer starts before the port is known, so that no request waits for it.
    let writer = (which == "durable-echo").then(|| durable::start_writer(Path::new("."))).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    println!("{}", address.port());
    std::thread::spawn(|| {
        let mut nothing = [0];
        // The parent writes nothing to the pipe, so this returns when the parent exits.
        let _ = std::io::stdin().read(&mut nothing);
        std::process::exit(0);
    });
    match (which, writer) {
        ("echo", _) => echo::serve(listener),
        ("durable-echo", Some(writer)) => durable::serve(listener, writer),
        ("loopback", _) => {
            loopback::serve(&listener);
            Ok(())
        }
        (other, _) => Err(format!("unknown baseline `{other}`")),
    }
}
