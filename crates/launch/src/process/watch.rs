//! Notices the end of a process, be it our child or not.

use std::process::Child;
use std::time::Duration;

use rustix::process::{PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::proc::ProcessId;

/// How often to look where the kernel does not tell.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// A shim whose end is waited for.
pub(super) enum WatchedShim {
    /// One that we started and have to collect.
    Child(Child),
    /// One that an earlier server started.
    Other(ProcessId),
}

impl WatchedShim {
    /// Returns when it ended.
    pub(super) async fn ended(self) {
        match self {
            Self::Child(mut child) => {
                if pidfd_ended(rustix::process::Pid::from_child(&child)).await.is_none() {
                    while let Ok(None) = child.try_wait() {
                        tokio::time::sleep(POLL_EVERY).await;
                    }
                }
                // It has ended: this collects it and does not wait.
                let _ = child.wait();
            }
            Self::Other(identity) => {
                while identity.is_alive() {
                    let Some(pid) = identity.pid() else { return };
                    // Looking again afterwards covers a number that was given out anew before the handle was made.
                    if pidfd_ended(pid).await.is_none() {
                        tokio::time::sleep(POLL_EVERY).await;
                    }
                }
            }
        }
    }
}

/// Waits through a handle of the process, which becomes readable when it ends; none if there is no such handle.
async fn pidfd_ended(pid: rustix::process::Pid) -> Option<()> {
    let handle = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
    #[expect(deprecated, reason = "its successor is unsafe; an `OwnedFd` keeps the promise that it asks for")]
    let handle = AsyncFd::with_interest(handle, Interest::READABLE).ok()?;
    handle.readable().await.ok().map(|_| ())
}
