//! The process of a zygote, and forks of it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::imports::{FileVersions, Imports};
use super::messages::{receive, send, send_files};
use super::recipe::Recipe;
use crate::proc::MARK;

/// The program of a zygote. The worker's own program runs in its place, at the top level of the interpreter.
const PROGRAM: &str = "from longshore_runtime import zygote; exec(*zygote.worker())";
/// The longest time for the imports of a zygote.
const IMPORTS_WAIT: Duration = Duration::from_mins(5);
/// The longest time for the answer about a fork. A shim gives up earlier.
const FORK_WAIT: Duration = Duration::from_mins(1);
/// The space for the environment that the kernel shows of a worker beyond that of the zygote, in bytes.
const SPACE_BYTES: usize = 16 * 1024;

/// A zygote that can be forked. It ends when this is dropped.
pub(crate) struct Zygote {
    control: Mutex<UnixStream>,
    imports: Imports,
    versions: FileVersions,
}

/// The first message to a zygote.
#[derive(Serialize)]
struct Order<'a> {
    modules: &'a [String],
    command: &'a [String],
    argv: &'a [String],
}

/// The answer of a zygote that has imported its modules.
#[derive(Deserialize)]
struct Answer {
    /// Why it cannot be forked; `None` if it can.
    why: Option<String>,
}

impl Zygote {
    /// Starts a zygote and waits until it has imported its modules. Blocks.
    ///
    /// # Errors
    ///
    /// Why there is no zygote. Its process has ended.
    pub(super) fn start(recipe: &Recipe, imports: &Imports) -> Result<(Self, Child), String> {
        // A change of a file during the imports makes the zygote an old one.
        let versions = imports.file_versions();
        let (control, theirs) = UnixStream::pair().map_err(|error| format!("no socket: {error}"))?;
        let mut child = Command::new(&imports.executable)
            .args(imports.options())
            .args(["-c", PROGRAM])
            .env_clear()
            .envs(&recipe.env)
            .env(MARK, "-".repeat(SPACE_BYTES))
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", imports.executable.display()))?;
        match import(&control, imports) {
            Ok(()) => {
                let control = Mutex::new(control);
                Ok((Self { control, imports: imports.clone(), versions }, child))
            }
            Err(reason) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(reason)
            }
        }
    }

    /// Whether the files of the imported modules are those that the zygote imported. Blocks on the disk.
    pub(super) fn is_current(&self) -> bool {
        self.imports.file_versions() == self.versions
    }

    /// Forks a shim, which executes `program` with these arguments, and its worker. Returns the shim's process, and its input
    /// and output. The shim ends if the connection is closed before it gets its order.
    ///
    /// # Errors
    ///
    /// The zygote has ended or does not listen.
    pub(crate) fn fork(&self, program: &File, arguments: &[OsString]) -> io::Result<(Pid, UnixStream)> {
        let (connection, theirs) = UnixStream::pair()?;
        connection.set_read_timeout(Some(FORK_WAIT))?;
        let arguments: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
        let arguments = arguments.ok_or_else(|| io::Error::other("the path of its folder is not text"))?;
        send(&connection, &arguments)?;
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        send_files(&control, b"f", [theirs.as_fd(), program.as_fd()])?;
        drop((control, theirs));
        let mut pid = [0; 4];
        (&connection).read_exact(&mut pid)?;
        let pid = Pid::from_raw(i32::from_be_bytes(pid)).ok_or(io::ErrorKind::InvalidData)?;
        Ok((pid, connection))
    }
}

/// Has a new zygote import its modules.
fn import(control: &UnixStream, imports: &Imports) -> Result<(), String> {
    let Imports { modules, command, argv, .. } = imports;
    let answer = control
        .set_read_timeout(Some(IMPORTS_WAIT))
        .and_then(|()| send(control, &Order { modules, command, argv }))
        .and_then(|()| receive::<Answer>(control))
        .map_err(|error| format!("its process ended or did not answer: {error}"))?;
    answer.why.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests;
