//! How often a key's owner may ask one endpoint for one operation, and how often a key may ask for anything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use longshore_model::{EndpointNo, OwnerNo};
use tokio::time::Instant;

use crate::errors::Failure;
use crate::window::{Verdict, WINDOW_MS, Window};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Idle entries are looked for when there are this many more entries than after the last look.
const SWEEP_STEP: usize = 1_024;

/// What the headers call the limit of a key.
const KEY: &str = "key";

/// Whether and how requests are limited.
#[derive(Clone, Debug)]
pub enum RateLimits {
    /// Not at all.
    Off,
    /// By this table.
    On(RateTable),
}

impl Default for RateLimits {
    fn default() -> Self {
        Self::On(RateTable::default())
    }
}

/// One operation's limits. The effective ones grow with the endpoint's running workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests in any ten seconds.
    pub per_10_s: u32,
    /// Requests at once; 0 means any number.
    pub concurrent: u32,
}

/// The limits per operation. The default is the specification's table.
#[derive(Clone, Debug)]
pub struct RateTable {
    /// What each running worker adds: an effective limit is at least their number times this.
    pub requests_per_worker: u32,
    /// `POST /runsync`.
    pub runsync: Limit,
    /// `POST /run`.
    pub run: Limit,
    /// `/status` and `/status-sync` together.
    pub status: Limit,
    /// `/stream`.
    pub stream: Limit,
    /// `/cancel` and `/retry` together.
    pub cancel: Limit,
    /// `/purge-queue`.
    pub purge_queue: Limit,
    /// `/openai/*`.
    pub openai: Limit,
    /// `/requests`.
    pub requests: Limit,
    /// `/webhooks`, and delivering them again.
    pub webhooks: Limit,
}

impl Default for RateTable {
    fn default() -> Self {
        let limit = |per_10_s, concurrent| Limit { per_10_s, concurrent };
        Self {
            requests_per_worker: 100,
            runsync: limit(2_000, 400),
            run: limit(1_000, 200),
            status: limit(2_000, 400),
            stream: limit(2_000, 400),
            cancel: limit(100, 20),
            purge_queue: limit(2, 0),
            openai: limit(2_000, 400),
            requests: limit(10, 2),
            webhooks: limit(100, 4),
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bucket {
    Runsync,
    Run,
    Status,
    Stream,
    Cancel,
    PurgeQueue,
    Openai,
    Requests,
    Webhooks,
}

impl Bucket {
    fn name(self) -> &'static str {
        match self {
            Self::Runsync => "runsync",
            Self::Run => "run",
            Self::Status => "status",
            Self::Stream => "stream",
            Self::Cancel => "cancel",
            Self::PurgeQueue => "purge-queue",
            Self::Openai => "openai",
            Self::Requests => "requests",
            Self::Webhooks => "webhooks",
        }
    }

    fn limit(self, table: &RateTable) -> Limit {
        match self {
            Self::Runsync => table.runsync,
            Self::Run => table.run,
            Self::Status => table.status,
            Self::Stream => table.stream,
            Self::Cancel => table.cancel,
            Self::PurgeQueue => table.purge_queue,
            Self::Openai => table.openai,
            Self::Requests => table.requests,
            Self::Webhooks => table.webhooks,
        }
    }
}

/// Counts what was asked, and says no.
pub(crate) struct RateLimiter {
    table: Option<RateTable>,
    started: Instant,
    gauges: Mutex<Gauges>,
    /// Of keys that have a limit of their own.
    keys: Mutex<HashMap<String, Window>>,
}

type Operations = HashMap<(EndpointNo, Bucket), Arc<Mutex<Gauge>>>;

#[derive(Default)]
struct Gauges {
    by_owner: HashMap<OwnerNo, Operations>,
    entries: usize,
    sweep_at: usize,
}

/// One owner's use of one operation of one endpoint.
#[derive(Default)]
struct Gauge {
    window: Window,
    open: u32,
}

impl RateLimiter {
    pub(crate) fn new(limits: &RateLimits) -> Self {
        let table = match limits {
            RateLimits::Off => None,
            RateLimits::On(table) => Some(table.clone()),
        };
        let gauges = Mutex::new(Gauges { sweep_at: SWEEP_STEP, ..Gauges::default() });
        Self { table, started: Instant::now(), gauges, keys: Mutex::default() }
    }

    /// Counts a request of a key that has a limit of its own, or says why not. That limit was asked for: it holds
    /// even where the others are switched off.
    pub(crate) fn admit_key(&self, key: &str, rate: u32) -> Result<(), Overrun> {
        self.admit_key_at(self.started.elapsed().as_millis() as u64, key, rate)
    }

    fn admit_key_at(&self, now_ms: u64, key: &str, rate: u32) -> Result<(), Overrun> {
        let mut keys = locked(&self.keys);
        if !keys.contains_key(key) {
            if keys.len() % SWEEP_STEP == SWEEP_STEP - 1 {
                keys.retain(|_, window| !window.is_idle(now_ms));
            }
            keys.insert(key.to_owned(), Window::default());
        }
        let Some(window) = keys.get_mut(key) else { return Ok(()) };
        match window.admit(now_ms, rate) {
            Verdict::Admitted { .. } => Ok(()),
            Verdict::Refused { wait_ms } => Err(Overrun::of_rate(KEY, rate, wait_ms)),
        }
    }

    /// Lets a request in, or says why not. Hold the admission until the request is answered.
    pub(crate) fn admit(
        &self,
        owner: OwnerNo,
        endpoint: EndpointNo,
        bucket: Bucket,
        running_workers: u32,
    ) -> Result<Admission, Overrun> {
        if self.table.is_none() {
            // Whoever switched the limits off pays for no clock.
            return Ok(Admission { held: None });
        }
        let now_ms = self.started.elapsed().as_millis() as u64;
        self.admit_at(now_ms, owner, endpoint, bucket, running_workers)
    }

    fn admit_at(
        &self,
        now_ms: u64,
        owner: OwnerNo,
        endpoint: EndpointNo,
        bucket: Bucket,
        running_workers: u32,
    ) -> Result<Admission, Overrun> {
        let Some(table) = &self.table else { return Ok(Admission { held: None }) };
        let limit = bucket.limit(table);
        let by_workers = running_workers.saturating_mul(table.requests_per_worker);
        let rate = limit.per_10_s.max(by_workers);
        let gauge_of = self.gauge(now_ms, owner, endpoint, bucket);
        let mut gauge = locked(&gauge_of);
        let standing = |left, reset_ms: u64| Standing {
            name: bucket.name(),
            rate,
            left,
            reset_s: reset_ms.div_ceil(1_000),
        };
        if limit.concurrent > 0 && gauge.open >= limit.concurrent.max(by_workers) {
            let standing = standing(0, 1_000);
            return Err(Overrun { standing, reason: Reason::Concurrency, retry_after_s: 1 });
        }
        match gauge.window.admit(now_ms, rate) {
            Verdict::Refused { wait_ms } => Err(Overrun::of_rate(bucket.name(), rate, wait_ms)),
            Verdict::Admitted { left } => {
                gauge.open += 1;
                let standing = standing(left, gauge.window.oldest_leaves_ms(now_ms));
                drop(gauge);
                Ok(Admission { held: Some((gauge_of, standing)) })
            }
        }
    }

    fn gauge(&self, now_ms: u64, owner: OwnerNo, endpoint: EndpointNo, bucket: Bucket) -> Arc<Mutex<Gauge>> {
        let mut gauges = locked(&self.gauges);
        if let Some(gauge) = gauges.by_owner.get(&owner).and_then(|of| of.get(&(endpoint, bucket))) {
            return Arc::clone(gauge);
        }
        if gauges.entries >= gauges.sweep_at {
            gauges.sweep(now_ms);
        }
        gauges.entries += 1;
        let operations = gauges.by_owner.entry(owner).or_default();
        Arc::clone(operations.entry((endpoint, bucket)).or_default())
    }
}

impl Gauges {
    /// Forgets whoever has not asked for ten seconds and waits for nothing.
    fn sweep(&mut self, now_ms: u64) {
        self.entries = 0;
        self.by_owner.retain(|_, operations| {
            operations.retain(|_, gauge| {
                let in_use = Arc::strong_count(gauge) > 1;
                in_use || !locked(gauge).window.is_idle(now_ms)
            });
            self.entries += operations.len();
            !operations.is_empty()
        });
        self.sweep_at = self.entries + SWEEP_STEP;
    }
}

/// What holds a lock here cannot panic half-way; a poisoned one is as good as new.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that is let in. It counts as concurrent until this is dropped.
pub(crate) struct Admission {
    held: Option<(Arc<Mutex<Gauge>>, Standing)>,
}

impl Admission {
    /// Tells the client how it stands, and that its request is over.
    pub(crate) fn close(self, mut response: Response) -> Response {
        if let Some((_, standing)) = &self.held {
            standing.write(response.headers_mut());
        }
        response
    }

    /// The same where the request is over at the end of the answer's body, or when its reader leaves.
    pub(crate) fn close_with_body(self, mut response: Response) -> Response {
        let Some((_, standing)) = &self.held else { return response };
        standing.write(response.headers_mut());
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _counts = &self;
                frame
            }))
        })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some((gauge, _)) = &self.held {
            let mut gauge = locked(gauge);
            gauge.open = gauge.open.saturating_sub(1);
        }
    }
}

/// How an owner stands with one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    name: &'static str,
    rate: u32,
    left: u32,
    reset_s: u64,
}

impl Standing {
    /// The fields of the IETF draft "`RateLimit` header fields for HTTP" (structured fields, RFC 9651).
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let name = self.name;
        let policy = format!("\"{name}\";q={};w={}", self.rate, WINDOW_MS / 1_000);
        let limit = format!("\"{name}\";r={};t={}", self.left, self.reset_s);
        for (field, value) in [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, limit)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(field, value);
            }
        }
    }
}

/// A request over a limit.
#[derive(Debug)]
pub(crate) struct Overrun {
    standing: Standing,
    reason: Reason,
    retry_after_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Rate,
    Concurrency,
}

impl Overrun {
    fn of_rate(name: &'static str, rate: u32, wait_ms: u64) -> Self {
        let reset_s = wait_ms.div_ceil(1_000);
        let standing = Standing { name, rate, left: 0, reset_s };
        Self { standing, reason: Reason::Rate, retry_after_s: reset_s.max(1) }
    }
}

impl From<Overrun> for Failure {
    fn from(overrun: Overrun) -> Self {
        let Standing { name, rate, .. } = overrun.standing;
        let (code, text) = match overrun.reason {
            Reason::Rate if name == KEY => {
                ("rate_limited", format!("over {rate} requests of this key in 10 seconds; ask again later"))
            }
            Reason::Rate => {
                ("rate_limited", format!("over {rate} {name} requests in 10 seconds; ask again later"))
            }
            Reason::Concurrency => {
                ("concurrency_limited", format!("too many {name} requests at once; let some end first"))
            }
        };
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, text)
            .retry_after(overrun.retry_after_s)
            .standing(overrun.standing)
    }
}

impl IntoResponse for Overrun {
    fn into_response(self) -> Response {
        Failure::from(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: EndpointNo = EndpointNo(1);
    const A: OwnerNo = OwnerNo(1);
    const B: OwnerNo = OwnerNo(2);

    fn limiter() -> RateLimiter {
        RateLimiter::new(&RateLimits::default())
    }

    #[test]
    fn the_defaults_are_the_specs_table() {
        let table = RateTable::default();
        let row = |bucket: Bucket| {
            let limit = bucket.limit(&table);
            (limit.per_10_s, limit.concurrent)
        };
        assert_eq!(row(Bucket::Runsync), (2_000, 400));
        assert_eq!(row(Bucket::Run), (1_000, 200));
        assert_eq!(row(Bucket::Status), (2_000, 400));
        assert_eq!(row(Bucket::Stream), (2_000, 400));
        assert_eq!(row(Bucket::Cancel), (100, 20));
        assert_eq!(row(Bucket::PurgeQueue), (2, 0));
        assert_eq!(row(Bucket::Requests), (10, 2));
        assert_eq!((table.openai.per_10_s, table.openai.concurrent), (2_000, 400));
    }

    #[test]
    fn a_rate_holds_per_owner_endpoint_and_operation() {
        let limiter = limiter();
        for _ in 0..2 {
            assert!(limiter.admit_at(0, A, ENDPOINT, Bucket::PurgeQueue, 0).is_ok());
        }
        let overrun = limiter.admit_at(9_500, A, ENDPOINT, Bucket::PurgeQueue, 0).err().unwrap();
        assert_eq!((overrun.reason, overrun.retry_after_s), (Reason::Rate, 1));
        assert!(limiter.admit_at(9_500, B, ENDPOINT, Bucket::PurgeQueue, 0).is_ok());
        assert!(limiter.admit_at(9_500, A, EndpointNo(2), Bucket::PurgeQueue, 0).is_ok());
        assert!(limiter.admit_at(9_500, A, ENDPOINT, Bucket::Cancel, 0).is_ok());
        assert!(limiter.admit_at(10_000, A, ENDPOINT, Bucket::PurgeQueue, 0).is_ok());
    }

    #[test]
    fn concurrency_ends_with_the_request() {
        let limiter = limiter();
        let first = limiter.admit_at(0, A, ENDPOINT, Bucket::Requests, 0).ok().unwrap();
        let _second = limiter.admit_at(0, A, ENDPOINT, Bucket::Requests, 0).ok().unwrap();
        let overrun = limiter.admit_at(0, A, ENDPOINT, Bucket::Requests, 0).err().unwrap();
        assert_eq!(overrun.reason, Reason::Concurrency);
        drop(first);
        assert!(limiter.admit_at(0, A, ENDPOINT, Bucket::Requests, 0).is_ok());
    }

    #[test]
    fn running_workers_raise_the_limits() {
        let limiter = limiter();
        for _ in 0..100 {
            assert!(limiter.admit_at(0, A, ENDPOINT, Bucket::PurgeQueue, 1).is_ok());
        }
        assert!(limiter.admit_at(0, A, ENDPOINT, Bucket::PurgeQueue, 1).is_err());
        let held: Vec<_> =
            (0..30).map_while(|_| limiter.admit_at(0, A, ENDPOINT, Bucket::Cancel, 1).ok()).collect();
        assert_eq!(held.len(), 30);
    }

    #[test]
    fn off_admits_everything_and_says_nothing() {
        let limiter = RateLimiter::new(&RateLimits::Off);
        for _ in 0..5_000 {
            let admission = limiter.admit_at(0, A, ENDPOINT, Bucket::PurgeQueue, 0).ok().unwrap();
            assert!(admission.close(Response::default()).headers().is_empty());
        }
    }

    #[test]
    fn answers_say_how_the_caller_stands() {
        let limiter = limiter();
        let admission = limiter.admit_at(0, A, ENDPOINT, Bucket::PurgeQueue, 0).ok().unwrap();
        let response = admission.close(Response::default());
        assert_eq!(response.headers()["ratelimit-policy"], "\"purge-queue\";q=2;w=10");
        assert_eq!(response.headers()["ratelimit"], "\"purge-queue\";r=1;t=10");
        limiter.admit_at(4_000, A, ENDPOINT, Bucket::PurgeQueue, 0).ok().unwrap();
        let refused =
            limiter.admit_at(4_000, A, ENDPOINT, Bucket::PurgeQueue, 0).err().unwrap().into_response();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "6");
        assert_eq!(refused.headers()["ratelimit"], "\"purge-queue\";r=0;t=6");
    }

    #[test]
    fn a_keys_own_limit_holds_whatever_it_asks_for_and_if_others_are_off() {
        let limiter = RateLimiter::new(&RateLimits::Off);
        for _ in 0..3 {
            limiter.admit_key_at(0, "a", 3).unwrap();
        }
        let refused = limiter.admit_key_at(7_200, "a", 3).unwrap_err().into_response();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "3");
        assert_eq!(refused.headers()["ratelimit"], "\"key\";r=0;t=3");
        assert_eq!(refused.headers()["ratelimit-policy"], "\"key\";q=3;w=10");
        limiter.admit_key_at(7_200, "b", 3).unwrap();
        limiter.admit_key_at(10_000, "a", 3).unwrap();
        for other in 0..10 * SWEEP_STEP {
            limiter.admit_key_at(20 * other as u64, &other.to_string(), 1).unwrap();
        }
        assert!(locked(&limiter.keys).len() <= 2 * SWEEP_STEP);
    }

    #[test]
    fn idle_entries_are_forgotten() {
        let limiter = limiter();
        let held = limiter.admit_at(0, OwnerNo(u32::MAX), ENDPOINT, Bucket::Run, 0).ok().unwrap();
        for owner in 0..10 * SWEEP_STEP {
            let now_ms = 20 * owner as u64;
            assert!(limiter.admit_at(now_ms, OwnerNo(owner as u32), ENDPOINT, Bucket::Run, 0).is_ok());
        }
        let gauges = locked(&limiter.gauges);
        assert!(gauges.entries <= 3 * SWEEP_STEP, "{} entries", gauges.entries);
        assert!(gauges.by_owner.contains_key(&OwnerNo(u32::MAX)));
        drop(gauges);
        drop(held);
    }
}
