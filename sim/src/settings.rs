//! The server's settings in one world.

use std::time::Duration;

use longshore_engine::{
    BreakerSettings, Capacity, EngineSettings, WebhookRetries, WebhookSettings, WorkerSettings,
};
use longshore_http::{HttpSettings, Limit, RateLimits, RateTable};

use crate::auditor::{Rate, Rates, Rules};
use crate::rng::Rng;

/// The address at which workers reach the server.
pub const BASE_URL: &str = "http://longshore.test";

/// The settings of the server's operator.
#[derive(Clone)]
pub struct ServerSettings {
    /// Settings of the engine.
    pub engine: EngineSettings,
    /// Settings of webhook delivery.
    pub webhooks: WebhookSettings,
    /// Settings of the workers' supervisors.
    pub workers: WorkerSettings,
    /// Settings of the HTTP interface.
    pub http: HttpSettings,
}

impl ServerSettings {
    /// Draws the settings of one world.
    pub fn draw(rng: &mut Rng) -> Self {
        let ping_interval_ms = *rng.pick(&[2_000, 5_000, 10_000]);
        let engine = EngineSettings {
            ping_interval_ms,
            stop_grace_ms: 10_000,
            jobs_max: *rng.pick(&[20, 1_000, 5_000_000]),
            output_bytes_max: *rng.pick(&[4_000, 10_000_000]),
            sync_output_bytes_max: *rng.pick(&[8_000, 20_000_000]),
            stream_bytes_max: 256_000_000,
            blob_bytes_min: *rng.pick(&[0, 500, 2_000, 262_144]),
            recent_bytes_max: *rng.pick(&[0, 4_000, 1 << 20]),
            ..EngineSettings::default()
        };
        // Drawn from a copy, so that the worlds of the corpus repeat unchanged.
        let mut own = rng.clone();
        let webhooks = WebhookSettings {
            allow_private: true,
            retries: retries(&mut own),
            breaker: BreakerSettings {
                failures_max: *own.pick(&[0, 1, 3, 10]),
                pause: Duration::from_secs(*own.pick(&[1, 10])),
                ..BreakerSettings::default()
            },
            body_bytes_max: *own.pick(&[4_000, 10_000_000, 10_000_000]),
            timeout: Duration::from_secs(10),
            calls_max: *rng.pick(&[1, 4, 64]),
            calls_per_host_max: *rng.pick(&[1, 4]),
            bytes_max: *rng.pick(&[1_000, 64 << 20]),
            ..WebhookSettings::default()
        };
        let workers = WorkerSettings {
            base_url: BASE_URL.to_owned(),
            ping_interval_ms,
            stop_grace_ms: 10_000,
            kill_grace_ms: 5_000,
            gpus: Vec::new(),
            capacity: Capacity::default(),
            ..WorkerSettings::default()
        };
        let http = HttpSettings {
            rate_limits: rate_limits(rng),
            bytes_in_flight_max: *rng.pick(&[100_000, 512_000_000]),
            worker_hold_ms: *rng.pick(&[1_000, 20_000]),
            ..HttpSettings::default()
        };
        Self { engine, webhooks, workers, http }
    }
}

/// The settings that an auditor may know: what an operator tells clients.
impl From<&ServerSettings> for Rules {
    fn from(settings: &ServerSettings) -> Self {
        let ServerSettings { engine, webhooks, workers, http } = settings;
        Self {
            rates: rates(&http.rate_limits),
            may_be_full: engine.jobs_max < 1_000_000,
            worker_hold_ms: http.worker_hold_ms,
            ping_interval_ms: engine.ping_interval_ms,
            stop_grace_ms: workers.stop_grace_ms,
            kill_grace_ms: workers.kill_grace_ms,
            webhook_attempts_max: webhooks.retries.attempts_max,
            webhook_body_bytes_max: webhooks.body_bytes_max,
            webhook_gap_ms: webhooks.retries.delay.as_millis() as u64,
            output_bytes_max: engine.output_bytes_max as usize,
            sync_output_bytes_max: engine.sync_output_bytes_max as usize,
            ..Self::default()
        }
    }
}

/// The specification's values, or others that an operator may choose.
fn retries(rng: &mut Rng) -> WebhookRetries {
    if rng.chance(0.7) {
        return WebhookRetries::default();
    }
    WebhookRetries {
        attempts_max: rng.range(1..=6) as u32,
        delay: Duration::from_secs(rng.range(1..=20)),
        factor: rng.range(1..=3) as u32,
        delay_max: Duration::from_mins(1),
        jitter_percent: *rng.pick(&[0, 50]),
    }
}

fn rates(limits: &RateLimits) -> Option<Rates> {
    let RateLimits::On(table) = limits else { return None };
    let rate =
        |limit: Limit| Rate { per_10_s: u64::from(limit.per_10_s), concurrent: u64::from(limit.concurrent) };
    Some(Rates {
        run: rate(table.run),
        runsync: rate(table.runsync),
        status: rate(table.status),
        stream: rate(table.stream),
        cancel: rate(table.cancel),
        purge_queue: rate(table.purge_queue),
        requests: rate(table.requests),
        requests_per_worker: u64::from(table.requests_per_worker),
    })
}

fn rate_limits(rng: &mut Rng) -> RateLimits {
    let limit = |per_10_s, concurrent| Limit { per_10_s, concurrent };
    match rng.range(0..=2) {
        0 => RateLimits::Off,
        1 => RateLimits::On(RateTable::default()),
        _ => RateLimits::On(RateTable {
            requests_per_worker: *rng.pick(&[0, 5, 100]),
            runsync: limit(20, 4),
            run: limit(20, 4),
            status: limit(40, 10),
            stream: limit(20, 4),
            cancel: limit(10, 2),
            purge_queue: limit(2, 0),
            openai: limit(20, 4),
            requests: limit(10, 2),
            webhooks: limit(20, 4),
            lb: limit(20, 4),
        }),
    }
}
