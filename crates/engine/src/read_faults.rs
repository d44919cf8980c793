//! Log lines about payloads and rows that cannot be read: at most 10 in 10 s, for any number of failing reads.

use std::sync::{Mutex, PoisonError};

use longshore_model::{EndpointId, JobId, Millis};

use crate::EndpointError;

/// Length of the window in which lines are counted, in ms.
const WINDOW_MS: u64 = 10_000;
/// Lines in one window. Further faults are counted, and the next line has their number.
const LINES_MAX: u32 = 10;

/// The limit of log lines about failed reads. One per engine.
#[derive(Debug, Default)]
pub(crate) struct ReadFaults {
    window: Mutex<FaultWindow>,
}

#[derive(Debug, Default)]
struct FaultWindow {
    /// The time of the window's first line.
    began: Millis,
    /// Lines in this window.
    lines: u32,
    /// Faults without a line since the last line.
    suppressed: u64,
}

impl FaultWindow {
    /// Counts a fault. Returns the number of faults without a line since the last line; `None` if this one gets no line.
    fn admit(&mut self, now: Millis) -> Option<u64> {
        if self.lines == 0 || now.since(self.began) >= WINDOW_MS {
            (self.began, self.lines) = (now, 0);
        }
        if self.lines >= LINES_MAX {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl ReadFaults {
    /// Logs that `part` of a job could not be read. Ignores errors other than `Unreadable` and `Damaged`.
    pub(crate) fn note(
        &self,
        now: Millis,
        endpoint: EndpointId,
        job: JobId,
        part: &str,
        error: &EndpointError,
    ) {
        let (EndpointError::Unreadable(cause) | EndpointError::Damaged(cause)) = error else { return };
        let admitted = self.window.lock().unwrap_or_else(PoisonError::into_inner).admit(now);
        let Some(suppressed) = admitted else { return };
        if matches!(error, EndpointError::Damaged(_)) {
            tracing::error!(%endpoint, %job, part, error = %cause, suppressed, "stored job damaged");
        } else {
            tracing::warn!(%endpoint, %job, part, error = %cause, suppressed, "stored job unreadable");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_are_written_in_a_window_and_further_faults_are_counted() {
        let mut window = FaultWindow::default();
        let admitted: Vec<_> = (0..15).map(|_| window.admit(Millis(100_000))).collect();
        assert_eq!(admitted, [vec![Some(0); 10], vec![None; 5]].concat());
        assert_eq!(window.admit(Millis(109_999)), None);
        assert_eq!(
            window.admit(Millis(110_000)),
            Some(6),
            "the next line has the number of faults without one"
        );
        assert_eq!(window.admit(Millis(110_000)), Some(0));
    }
}
