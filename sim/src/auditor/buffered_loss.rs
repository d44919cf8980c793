//! What endpoints with buffered durability may lose: their last changes before a power cut.

use super::Auditor;
use super::exchange::Exchange;

impl Auditor {
    /// The server was killed, perhaps by a power cut. The last changes of buffered endpoints are uncertain.
    pub(super) fn forget_buffered(&mut self) {
        let now = self.ledger.now;
        let lost_ms = self.rules.buffered_loss_ms;
        for exchange in self.exchanges.values_mut() {
            let Some(endpoint) = exchange.endpoint.filter(|_| exchange.arrived.is_some()) else { continue };
            exchange.is_void |= self.model.endpoints[endpoint.0].settings.is_buffered;
        }
        let buffered: Vec<_> =
            self.model.endpoints.iter().map(|endpoint| endpoint.settings.is_buffered).collect();
        for (endpoint, _) in buffered.iter().enumerate().filter(|(_, is_buffered)| **is_buffered) {
            let entry = &mut self.model.endpoints[endpoint];
            entry.health = None;
            entry.is_count_void = true;
            for purge in &mut entry.purges {
                purge.answered = purge.answered.filter(|answered| answered.ms + lost_ms < now.ms);
            }
            for no in entry.jobs.clone() {
                let Some(job) = self.model.get_mut(no) else { continue };
                job.is_void |= job.touched.ms + lost_ms >= now.ms;
            }
        }
        let open: Vec<_> = self
            .exchanges
            .values()
            .filter(|exchange| exchange.is_void)
            .filter_map(|exchange| exchange.job)
            .collect();
        for no in open {
            if let Some(job) = self.model.get_mut(no) {
                job.is_void = true;
            }
        }
    }

    /// Processes a response from before a power cut: the jobs in it may be lost.
    pub(super) fn void_answer(&mut self, exchange: &Exchange, body: &[u8]) {
        let Some(endpoint) = exchange.endpoint else { return };
        let now = self.ledger.now;
        for id in super::wire::ids(body) {
            let (no, _) = self.model.job(id, endpoint, now);
            if let Some(job) = self.model.get_mut(no) {
                job.is_void = true;
            }
        }
    }
}
