//! What could not be read from the disk, said in the log: a few lines, however many readers a broken disk has.

use std::sync::{Mutex, PoisonError};

use longshore_model::{EndpointId, JobId, Millis};

use crate::EndpointError;

/// Lines are counted over so long, in milliseconds.
const WINDOW_MS: u64 = 10_000;
/// Lines in that time. What comes beyond is counted, and the count is said with the next line.
const LINES_MAX: u32 = 10;

/// How much of it was said lately.
#[derive(Debug, Default)]
pub(crate) struct ReadFaults {
    window: Mutex<FaultWindow>,
}

#[derive(Debug, Default)]
struct FaultWindow {
    began: Millis,
    lines: u32,
    unsaid: u64,
}

impl FaultWindow {
    /// Whether there is a line for one more, and how many went without since the last.
    fn admit(&mut self, now: Millis) -> Option<u64> {
        if self.lines == 0 || now.since(self.began) >= WINDOW_MS {
            (self.began, self.lines) = (now, 0);
        }
        if self.lines >= LINES_MAX {
            self.unsaid += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

impl ReadFaults {
    /// Says that this part of a job could not be read. Whatever else went wrong is not its business.
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
        let Some(unsaid) = admitted else { return };
        if matches!(error, EndpointError::Damaged(_)) {
            tracing::error!(%endpoint, %job, part, %cause, unsaid, "what is stored of a job is damaged");
        } else {
            tracing::warn!(%endpoint, %job, part, %cause, unsaid, "what is stored of a job cannot be read now");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_are_written_and_the_others_counted() {
        let mut window = FaultWindow::default();
        let admitted: Vec<_> = (0..15).map(|_| window.admit(Millis(100_000))).collect();
        assert_eq!(admitted, [vec![Some(0); 10], vec![None; 5]].concat());
        assert_eq!(window.admit(Millis(109_999)), None);
        assert_eq!(window.admit(Millis(110_000)), Some(6), "the next window says how many went without");
        assert_eq!(window.admit(Millis(110_000)), Some(0));
    }
}
