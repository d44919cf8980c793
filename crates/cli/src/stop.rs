//! Ctrl-C and its relatives.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears of every wish to stop: Ctrl-C, a polite kill, a closed terminal.
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

    /// Returns when the next wish comes.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
