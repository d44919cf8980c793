//! A worker that is a fork of a zygote. It is a child of this shim, made before the shim's program was executed, and waits on
//! the socket that is the shim's error output.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, PipeWriter, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;
use serde::Serialize;

use crate::proc::MARK;
use crate::zygote::send_with_files;

/// The longest time for an answer of the fork.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 4_096;

/// What the fork becomes.
#[derive(Serialize)]
struct Order<'a> {
    cwd: &'a Path,
    env: &'a BTreeMap<String, String>,
    /// The name of the variable with the shim's mark.
    mark: &'static str,
}

/// A fork that is not a worker yet.
pub(super) struct Fork {
    channel: UnixStream,
    pub(super) pid: Pid,
}

impl Fork {
    /// The fork that came with this process. The process gets another error output.
    pub(super) fn take() -> io::Result<Self> {
        let channel = UnixStream::from(io::stderr().as_fd().try_clone_to_owned()?);
        rustix::stdio::dup2_stderr(OpenOptions::new().write(true).open("/dev/null")?)?;
        channel.set_read_timeout(Some(ANSWER_WAIT))?;
        let mut pid = [0; 4];
        (&channel).read_exact(&mut pid)?;
        let pid = Pid::from_raw(i32::from_be_bytes(pid)).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { channel, pid })
    }

    /// Has the fork become the worker, and waits until it has.
    pub(super) fn become_worker(
        &self,
        cwd: &Path,
        env: &BTreeMap<String, String>,
        output: &PipeWriter,
    ) -> Result<(), String> {
        let mut answer = String::new();
        send_with_files(&self.channel, &Order { cwd, env, mark: MARK }, [output.as_fd(), output.as_fd()])
            .and_then(|()| (&self.channel).take(ANSWER_BYTES_MAX).read_to_string(&mut answer))
            .map_err(|error| format!("the fork of the zygote does not answer: {error}"))?;
        match answer.as_str() {
            "ok" => Ok(()),
            "" => Err("the fork of the zygote ended".to_owned()),
            reason => Err(format!("the fork of the zygote failed: {reason}")),
        }
    }
}
