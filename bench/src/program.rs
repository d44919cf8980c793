//! Programs that a run starts and stops.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cores::Cores;

const START_TIME_MAX: Duration = Duration::from_secs(30);
/// Time from SIGTERM to SIGKILL.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// The processors that a program runs on.
#[derive(Clone, Copy, Debug)]
pub enum CpuPlacement {
    /// The processors of measured programs.
    Measured,
    /// The generator's processor, because the program is part of the load.
    Beside,
}

/// A running program. Stopped on drop.
pub struct Program {
    child: Child,
    name: String,
}

impl Program {
    /// Starts the program. Its standard output is discarded; its standard error is this process's.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn start(command: &mut Command, place: CpuPlacement, cores: Cores) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let name = command.get_program().to_string_lossy().into_owned();
        let started = match place {
            CpuPlacement::Measured => cores.spawn_measured(command),
            CpuPlacement::Beside => command.spawn(),
        };
        let child = started.map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { child, name })
    }

    /// Waits until the program accepts connections.
    ///
    /// # Errors
    ///
    /// If the program exits or does not listen in time.
    pub fn wait_listening(&mut self, address: SocketAddr) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < START_TIME_MAX {
            if TcpStream::connect(address).is_ok() {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} ended ({status})", self.name));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(format!("{} did not listen within {} s", self.name, START_TIME_MAX.as_secs()))
    }

    /// The process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = Pid::from_raw(self.child.id() as i32).map(|pid| kill_process(pid, Signal::TERM));
        let began = Instant::now();
        while !self.has_ended() && began.elapsed() < END_TIME_MAX {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a loopback address with a free port.
///
/// # Errors
///
/// If no port is free.
pub fn free_address() -> Result<SocketAddr, String> {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    address.map_err(|error: io::Error| format!("no port is free: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_with_its_owner() {
        let cores = Cores::unpinned();
        let program = Program::start(Command::new("sleep").arg("60"), CpuPlacement::Beside, cores).unwrap();
        let path = format!("/proc/{}", program.child.id());
        assert!(std::path::Path::new(&path).exists());
        drop(program);
        assert!(!std::path::Path::new(&path).exists());
    }

    #[test]
    fn a_program_that_ends_is_not_waited_for() {
        let mut program =
            Program::start(&mut Command::new("false"), CpuPlacement::Beside, Cores::unpinned()).unwrap();
        let error = program.wait_listening(free_address().unwrap()).unwrap_err();
        assert!(error.starts_with("false ended"), "{error}");
    }
}
