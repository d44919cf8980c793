//! Times of the server's outages, in which actions may take longer.

use super::Auditor;

/// Longest delay of the server's own actions without an outage, in ms. Slow disks and networks are no outage.
pub(super) const SLACK_MS: u64 = 60_000;

impl Auditor {
    /// The server started or ended, failed a write, gave up a request, or was suspended.
    pub(super) fn note_outage(&mut self) {
        let now_ms = self.ledger.now.ms;
        if self.outages_ms.last() != Some(&now_ms) {
            self.outages_ms.push(now_ms);
        }
    }

    /// Whether the server had no outage between these times, in ms.
    pub(super) fn is_outage_free(&self, from_ms: u64, until_ms: u64) -> bool {
        let first = self.outages_ms.partition_point(|outage_ms| *outage_ms < from_ms);
        self.outages_ms.get(first).is_none_or(|outage_ms| *outage_ms > until_ms)
    }
}
