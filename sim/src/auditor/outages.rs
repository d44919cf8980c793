//! When the server had trouble: then much is allowed to take longer.

use super::Auditor;

/// What the server does by itself is done so long after it should be, at the latest, where it has no trouble. Slow
/// disks and slow networks are no trouble.
pub(super) const SLACK_MS: u64 = 60_000;

impl Auditor {
    /// The server came or went, could not write, gave up a request, or lost the time.
    pub(super) fn note_trouble(&mut self) {
        let now_ms = self.ledger.now.ms;
        if self.troubles_ms.last() != Some(&now_ms) {
            self.troubles_ms.push(now_ms);
        }
    }

    /// Whether the server had no trouble from one millisecond to the other.
    pub(super) fn is_smooth(&self, from_ms: u64, until_ms: u64) -> bool {
        let first = self.troubles_ms.partition_point(|trouble_ms| *trouble_ms < from_ms);
        self.troubles_ms.get(first).is_none_or(|trouble_ms| *trouble_ms > until_ms)
    }
}
