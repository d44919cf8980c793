//! Times of the server's troubles, in which actions may take longer.

use super::Auditor;

/// Longest delay of the server's own actions without trouble, in ms. Slow disks and networks are no trouble.
pub(super) const SLACK_MS: u64 = 60_000;

impl Auditor {
    /// The server started or ended, failed a write, gave up a request, or was suspended.
    pub(super) fn note_trouble(&mut self) {
        let now_ms = self.ledger.now.ms;
        if self.troubles_ms.last() != Some(&now_ms) {
            self.troubles_ms.push(now_ms);
        }
    }

    /// Whether the server had no trouble between these times, in ms.
    pub(super) fn is_smooth(&self, from_ms: u64, until_ms: u64) -> bool {
        let first = self.troubles_ms.partition_point(|trouble_ms| *trouble_ms < from_ms);
        self.troubles_ms.get(first).is_none_or(|trouble_ms| *trouble_ms > until_ms)
    }
}
