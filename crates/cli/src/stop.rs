//! Signals that ask a command to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives stop signals: SIGINT (Ctrl-C), SIGTERM and SIGHUP.
pub(crate) struct StopRequest {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopRequest {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Returns when the next signal arrives.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
