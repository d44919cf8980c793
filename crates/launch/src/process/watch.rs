//! Waits for the exit of a process, which may be no child of the server.

use std::process::Child;
use std::time::Duration;

use rustix::process::{PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::proc::ProcessId;

/// How often the process is checked if the kernel has no handles of processes.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// A process whose exit is awaited.
pub(crate) enum WatchedShim {
    /// A child of this server, which has to be reaped.
    Child(Child),
    /// A shim that an earlier server or a zygote started.
    Other(ProcessId),
}

impl WatchedShim {
    /// Returns when the process has exited.
    pub(crate) async fn ended(self) {
        match self {
            Self::Child(mut child) => {
                if pidfd_ended(rustix::process::Pid::from_child(&child)).await.is_none() {
                    while let Ok(None) = child.try_wait() {
                        tokio::time::sleep(POLL_EVERY).await;
                    }
                }
                // The process has exited, so this reaps it without waiting.
                let _ = child.wait();
            }
            Self::Other(identity) => {
                while identity.is_alive() {
                    let Some(pid) = identity.pid() else { return };
                    // The check afterwards covers a number that was reused before the handle was opened.
                    if pidfd_ended(pid).await.is_none() {
                        tokio::time::sleep(POLL_EVERY).await;
                    }
                }
            }
        }
    }
}

/// Waits on a handle of the process, which becomes readable at its exit; `None` if there are no such handles.
async fn pidfd_ended(pid: rustix::process::Pid) -> Option<()> {
    let handle = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
    #[expect(deprecated, reason = "its successor is unsafe; an `OwnedFd` keeps the promise that it asks for")]
    let handle = AsyncFd::with_interest(handle, Interest::READABLE).ok()?;
    handle.readable().await.ok().map(|_| ())
}
