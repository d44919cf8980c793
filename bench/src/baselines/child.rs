//! A floor's server: a child process of the same program, on the processor of what is measured.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{durable, echo, loopback};
use crate::cores::Cores;

/// A floor's server that runs until this is dropped.
pub struct Baseline {
    child: Child,
    address: SocketAddr,
}

impl Baseline {
    /// Starts `echo`, `durable-echo` or `loopback`; a file that it needs is in this folder.
    pub fn start(which: &str, cores: Cores, folder: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
        let mut command = Command::new(program);
        command.args(["floor", which]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            cores.spawn_measured(&mut command).map_err(|error| format!("cannot start {which}: {error}"))?;
        let mut line = String::new();
        let said = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let port: Option<u16> = said.and_then(Result::ok).and_then(|_| line.trim().parse().ok());
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or_default()).into();
        let floor = Self { child, address };
        if port.is_none() { Err(format!("{which} did not say its port")) } else { Ok(floor) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the child does: serves until the parent is gone.
pub fn serve(which: &str) -> Result<(), String> {
    // Before its port is known, so that nobody waits for it.
    let writer = (which == "durable-echo").then(|| durable::start_writer(Path::new("."))).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    println!("{}", address.port());
    std::thread::spawn(|| {
        let mut nothing = [0];
        // The parent writes nothing: this ends when it ends.
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
        (other, _) => Err(format!("no floor is called `{other}`")),
    }
}
