//! The rate limits as they are written in a settings file.

use longshore_http::{Limit, RateLimits, RateTable};
use serde::Deserialize;

/// The table `[rate_limits]` of the configuration file, as it is written there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitSettings {
    mode: Mode,
    requests_per_worker: u32,
    runsync: LimitRow,
    run: LimitRow,
    status: LimitRow,
    stream: LimitRow,
    cancel: LimitRow,
    purge_queue: LimitRow,
    openai: LimitRow,
    requests: LimitRow,
    webhooks: LimitRow,
    lb: LimitRow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    On,
    Off,
}

/// The limits of one operation.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitRow {
    per_10_s: u32,
    concurrent: u32,
}

impl LimitSettings {
    /// Disables the limits of all routes, as `rate_limits = "off"` asks.
    pub(super) fn switch_off(&mut self) {
        self.mode = Mode::Off;
    }

    /// Returns the limits for the HTTP edge.
    pub(super) fn limits(&self) -> RateLimits {
        let limit = |row: LimitRow| Limit { per_10_s: row.per_10_s, concurrent: row.concurrent };
        match self.mode {
            Mode::Off => RateLimits::Off,
            Mode::On => RateLimits::On(RateTable {
                requests_per_worker: self.requests_per_worker,
                runsync: limit(self.runsync),
                run: limit(self.run),
                status: limit(self.status),
                stream: limit(self.stream),
                cancel: limit(self.cancel),
                purge_queue: limit(self.purge_queue),
                openai: limit(self.openai),
                requests: limit(self.requests),
                webhooks: limit(self.webhooks),
                lb: limit(self.lb),
            }),
        }
    }
}
