//! Rate limits: per key owner, endpoint and operation, and per key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::BodyExt as _;
use longshore_engine::{EndpointHandle, SubmitRefusal};
use longshore_history::LimitedOperation;
use longshore_model::{EndpointNo, OwnerNo};
use tokio::time::Instant;

use crate::gate::sliding_window::{SlidingWindow, WINDOW_MS, WindowDecision};
use crate::wire::api_error::ApiError;
use crate::wire::limit_status::LimitStatus;

/// Idle usages are removed when there are this many more of them than after the last removal. Idle windows of keys are
/// removed each time their number reaches a multiple of this.
const SWEEP_STEP: usize = 1_024;

/// The name of a key's own limit in response headers.
const KEY: &str = "key";

/// The rate limits of a server.
#[derive(Clone, Debug)]
pub enum RateLimits {
    /// No limits, other than those of keys.
    Off,
    /// The limits of this table.
    On(RateTable),
}

impl Default for RateLimits {
    fn default() -> Self {
        Self::On(RateTable::default())
    }
}

/// The limits of one operation. The effective limits grow with the endpoint's running workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests in any 10 s.
    pub per_10_s: u32,
    /// Concurrent requests; 0 means no limit.
    pub concurrent: u32,
}

/// The limits per operation. The default is the specification's table.
#[derive(Clone, Debug)]
pub struct RateTable {
    /// Requests per running worker: an effective limit is at least this number times the running workers.
    pub requests_per_worker: u32,
    /// The limits of `POST /runsync`.
    pub runsync: Limit,
    /// The limits of `POST /run`.
    pub run: Limit,
    /// The limits of `/status` and `/status-sync` together.
    pub status: Limit,
    /// The limits of `/stream`.
    pub stream: Limit,
    /// The limits of `/cancel` and `/retry` together.
    pub cancel: Limit,
    /// The limits of `/purge-queue`.
    pub purge_queue: Limit,
    /// The limits of `/openai/*`.
    pub openai: Limit,
    /// The limits of `/requests`.
    pub requests: Limit,
    /// The limits of `/webhooks` and of their redelivery.
    pub webhooks: Limit,
    /// The limits of requests to load-balancing endpoints. Those without a key count by the client's address.
    pub lb: Limit,
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
            lb: limit(2_000, 400),
        }
    }
}

impl RateTable {
    /// The limits of an operation.
    fn limit(&self, operation: LimitedOperation) -> Limit {
        match operation {
            LimitedOperation::Runsync => self.runsync,
            LimitedOperation::Run => self.run,
            LimitedOperation::Status => self.status,
            LimitedOperation::Stream => self.stream,
            LimitedOperation::Cancel => self.cancel,
            LimitedOperation::PurgeQueue => self.purge_queue,
            LimitedOperation::Openai => self.openai,
            LimitedOperation::Requests => self.requests,
            LimitedOperation::Webhooks => self.webhooks,
            LimitedOperation::Lb => self.lb,
        }
    }
}

/// Counts a request to an operation of this endpoint that was over the limit.
pub(crate) fn count_refused(operation: LimitedOperation, endpoint: &EndpointHandle) {
    endpoint.metrics().activity.limited(operation);
    if operation.is_submit() {
        endpoint.metrics().events.refused(SubmitRefusal::RateLimit);
    }
}

/// Counts requests and rejects those over a limit.
pub(crate) struct RateLimiter {
    table: Option<RateTable>,
    started: Instant,
    usages: Mutex<Usages>,
    /// The windows of keys with a limit of their own, by key id.
    keys: Mutex<HashMap<String, SlidingWindow>>,
}

type Operations = HashMap<(EndpointNo, LimitedOperation), Arc<Mutex<Usage>>>;

/// The usages of all owners.
#[derive(Default)]
struct Usages {
    by_owner: HashMap<OwnerNo, Operations>,
    /// The number of usages in `by_owner`.
    entries: usize,
    /// The number of usages at which idle ones are removed.
    sweep_at: usize,
}

/// One owner's use of one operation of one endpoint.
#[derive(Default)]
struct Usage {
    window: SlidingWindow,
    /// Requests that have no response yet.
    open: u32,
}

impl RateLimiter {
    pub(crate) fn new(limits: &RateLimits) -> Self {
        let table = match limits {
            RateLimits::Off => None,
            RateLimits::On(table) => Some(table.clone()),
        };
        let usages = Mutex::new(Usages { sweep_at: SWEEP_STEP, ..Usages::default() });
        Self { table, started: Instant::now(), usages, keys: Mutex::default() }
    }

    /// Counts a request of a key with a limit of its own. That limit holds even if all others are switched off.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`] if the key is over its limit; the request is not counted.
    pub(crate) fn admit_key(&self, key: &str, rate: u32) -> Result<(), LimitExceeded> {
        self.admit_key_at(self.started.elapsed().as_millis() as u64, key, rate)
    }

    fn admit_key_at(&self, now_ms: u64, key: &str, rate: u32) -> Result<(), LimitExceeded> {
        let mut keys = locked(&self.keys);
        if !keys.contains_key(key) {
            if keys.len() % SWEEP_STEP == SWEEP_STEP - 1 {
                keys.retain(|_, window| !window.is_idle(now_ms));
            }
            keys.insert(key.to_owned(), SlidingWindow::default());
        }
        let Some(window) = keys.get_mut(key) else { return Ok(()) };
        match window.admit(now_ms, rate) {
            WindowDecision::Admitted { .. } => Ok(()),
            WindowDecision::Refused { wait_ms } => Err(LimitExceeded::of_rate(KEY, rate, wait_ms)),
        }
    }

    /// Counts a request without a key, by the address of its client.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`] if the address is over the rate of the operation; the request is not counted.
    pub(crate) fn admit_address(
        &self,
        address: &str,
        operation: LimitedOperation,
    ) -> Result<(), LimitExceeded> {
        let Some(table) = &self.table else { return Ok(()) };
        // No key has such an id.
        let client = format!("{} {address}", operation.as_str());
        self.admit_key(&client, table.limit(operation).per_10_s)
    }

    /// Counts a request. Hold the permit until the request has its response.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`] if the rate or the concurrency is over its limit; the request is not counted.
    pub(crate) fn admit(
        &self,
        owner: OwnerNo,
        endpoint: EndpointNo,
        operation: LimitedOperation,
        running_workers: u32,
    ) -> Result<RequestPermit, LimitExceeded> {
        if self.table.is_none() {
            // Without limits the clock is not read.
            return Ok(RequestPermit { held: None });
        }
        let now_ms = self.started.elapsed().as_millis() as u64;
        self.admit_at(now_ms, owner, endpoint, operation, running_workers)
    }

    fn admit_at(
        &self,
        now_ms: u64,
        owner: OwnerNo,
        endpoint: EndpointNo,
        operation: LimitedOperation,
        running_workers: u32,
    ) -> Result<RequestPermit, LimitExceeded> {
        let Some(table) = &self.table else { return Ok(RequestPermit { held: None }) };
        let limit = table.limit(operation);
        let by_workers = running_workers.saturating_mul(table.requests_per_worker);
        let rate = limit.per_10_s.max(by_workers);
        let usage_of = self.usage(now_ms, owner, endpoint, operation);
        let mut usage = locked(&usage_of);
        let limit_status = |left, reset_ms: u64| LimitStatus {
            name: operation.as_str(),
            rate,
            window_s: WINDOW_MS / 1_000,
            left,
            reset_s: reset_ms.div_ceil(1_000),
        };
        if limit.concurrent > 0 && usage.open >= limit.concurrent.max(by_workers) {
            let limit_status = limit_status(0, 1_000);
            return Err(LimitExceeded { limit_status, reason: Reason::Concurrency, retry_after_s: 1 });
        }
        match usage.window.admit(now_ms, rate) {
            WindowDecision::Refused { wait_ms } => {
                Err(LimitExceeded::of_rate(operation.as_str(), rate, wait_ms))
            }
            WindowDecision::Admitted { left } => {
                usage.open += 1;
                let limit_status = limit_status(left, usage.window.oldest_leaves_ms(now_ms));
                drop(usage);
                Ok(RequestPermit { held: Some((usage_of, limit_status)) })
            }
        }
    }

    fn usage(
        &self,
        now_ms: u64,
        owner: OwnerNo,
        endpoint: EndpointNo,
        operation: LimitedOperation,
    ) -> Arc<Mutex<Usage>> {
        let mut usages = locked(&self.usages);
        if let Some(usage) = usages.by_owner.get(&owner).and_then(|of| of.get(&(endpoint, operation))) {
            return Arc::clone(usage);
        }
        if usages.entries >= usages.sweep_at {
            usages.sweep(now_ms);
        }
        usages.entries += 1;
        let operations = usages.by_owner.entry(owner).or_default();
        Arc::clone(operations.entry((endpoint, operation)).or_default())
    }
}

impl Usages {
    /// Removes usages without a request in the last 10 s that no open request holds.
    fn sweep(&mut self, now_ms: u64) {
        self.entries = 0;
        self.by_owner.retain(|_, operations| {
            operations.retain(|_, usage| {
                let in_use = Arc::strong_count(usage) > 1;
                in_use || !locked(usage).window.is_idle(now_ms)
            });
            self.entries += operations.len();
            !operations.is_empty()
        });
        self.sweep_at = self.entries + SWEEP_STEP;
    }
}

/// Locks a mutex. No holder can panic half-way, so that a poisoned lock is used as it is.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request within its limits. It counts as concurrent until the permit is dropped.
pub(crate) struct RequestPermit {
    held: Option<(Arc<Mutex<Usage>>, LimitStatus)>,
}

impl RequestPermit {
    /// A permit that counts nothing.
    pub(super) fn uncounted() -> Self {
        Self { held: None }
    }

    /// Ends the request and adds the state of its limit to the response.
    pub(crate) fn close(self, mut response: Response) -> Response {
        if let Some((_, limit_status)) = &self.held {
            limit_status.write(response.headers_mut());
        }
        response
    }

    /// As [`Self::close`], but the request ends at the end of the response's body, or when its reader disconnects.
    pub(crate) fn close_with_body(self, mut response: Response) -> Response {
        let Some((_, limit_status)) = &self.held else { return response };
        limit_status.write(response.headers_mut());
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _counts = &self;
                frame
            }))
        })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        if let Some((usage, _)) = &self.held {
            let mut usage = locked(usage);
            usage.open = usage.open.saturating_sub(1);
        }
    }
}

/// A request over a limit.
#[derive(Debug)]
pub(crate) struct LimitExceeded {
    limit_status: LimitStatus,
    reason: Reason,
    retry_after_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Rate,
    Concurrency,
}

impl LimitExceeded {
    pub(super) fn of_rate(name: &'static str, rate: u32, wait_ms: u64) -> Self {
        let reset_s = wait_ms.div_ceil(1_000);
        let limit_status = LimitStatus { name, rate, window_s: WINDOW_MS / 1_000, left: 0, reset_s };
        Self { limit_status, reason: Reason::Rate, retry_after_s: reset_s.max(1) }
    }

    /// Too many requests without a response. `rate` is the limit in 10 s, for the headers.
    pub(super) fn of_concurrency(name: &'static str, rate: u32) -> Self {
        let limit_status = LimitStatus { name, rate, window_s: WINDOW_MS / 1_000, left: 0, reset_s: 1 };
        Self { limit_status, reason: Reason::Concurrency, retry_after_s: 1 }
    }
}

impl From<LimitExceeded> for ApiError {
    fn from(exceeded: LimitExceeded) -> Self {
        let LimitStatus { name, rate, .. } = exceeded.limit_status;
        let (code, text) = match exceeded.reason {
            Reason::Rate if name == KEY => {
                ("rate_limited", format!("over {rate} requests of this key in 10 seconds; ask again later"))
            }
            Reason::Rate => {
                ("rate_limited", format!("over {rate} {name} requests in 10 seconds; ask again later"))
            }
            Reason::Concurrency => {
                ("concurrency_limited", format!("too many concurrent {name} requests; let some end first"))
            }
        };
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, text)
            .retry_after(exceeded.retry_after_s)
            .limit_status(exceeded.limit_status)
    }
}

impl IntoResponse for LimitExceeded {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
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
        let row = |operation: LimitedOperation| {
            let limit = table.limit(operation);
            (limit.per_10_s, limit.concurrent)
        };
        assert_eq!(row(LimitedOperation::Runsync), (2_000, 400));
        assert_eq!(row(LimitedOperation::Run), (1_000, 200));
        assert_eq!(row(LimitedOperation::Status), (2_000, 400));
        assert_eq!(row(LimitedOperation::Stream), (2_000, 400));
        assert_eq!(row(LimitedOperation::Cancel), (100, 20));
        assert_eq!(row(LimitedOperation::PurgeQueue), (2, 0));
        assert_eq!(row(LimitedOperation::Requests), (10, 2));
        assert_eq!((table.openai.per_10_s, table.openai.concurrent), (2_000, 400));
    }

    #[test]
    fn a_rate_holds_per_owner_endpoint_and_operation() {
        let limiter = limiter();
        for _ in 0..2 {
            assert!(limiter.admit_at(0, A, ENDPOINT, LimitedOperation::PurgeQueue, 0).is_ok());
        }
        let exceeded = limiter.admit_at(9_500, A, ENDPOINT, LimitedOperation::PurgeQueue, 0).err().unwrap();
        assert_eq!((exceeded.reason, exceeded.retry_after_s), (Reason::Rate, 1));
        assert!(limiter.admit_at(9_500, B, ENDPOINT, LimitedOperation::PurgeQueue, 0).is_ok());
        assert!(limiter.admit_at(9_500, A, EndpointNo(2), LimitedOperation::PurgeQueue, 0).is_ok());
        assert!(limiter.admit_at(9_500, A, ENDPOINT, LimitedOperation::Cancel, 0).is_ok());
        assert!(limiter.admit_at(10_000, A, ENDPOINT, LimitedOperation::PurgeQueue, 0).is_ok());
    }

    #[test]
    fn concurrency_ends_with_the_request() {
        let limiter = limiter();
        let first = limiter.admit_at(0, A, ENDPOINT, LimitedOperation::Requests, 0).ok().unwrap();
        let _second = limiter.admit_at(0, A, ENDPOINT, LimitedOperation::Requests, 0).ok().unwrap();
        let exceeded = limiter.admit_at(0, A, ENDPOINT, LimitedOperation::Requests, 0).err().unwrap();
        assert_eq!(exceeded.reason, Reason::Concurrency);
        drop(first);
        assert!(limiter.admit_at(0, A, ENDPOINT, LimitedOperation::Requests, 0).is_ok());
    }

    #[test]
    fn running_workers_raise_the_limits() {
        let limiter = limiter();
        for _ in 0..100 {
            assert!(limiter.admit_at(0, A, ENDPOINT, LimitedOperation::PurgeQueue, 1).is_ok());
        }
        assert!(limiter.admit_at(0, A, ENDPOINT, LimitedOperation::PurgeQueue, 1).is_err());
        let held: Vec<_> = (0..30)
            .map_while(|_| limiter.admit_at(0, A, ENDPOINT, LimitedOperation::Cancel, 1).ok())
            .collect();
        assert_eq!(held.len(), 30);
    }

    #[test]
    fn without_limits_everything_is_admitted_without_headers() {
        let limiter = RateLimiter::new(&RateLimits::Off);
        for _ in 0..5_000 {
            let admission = limiter.admit_at(0, A, ENDPOINT, LimitedOperation::PurgeQueue, 0).ok().unwrap();
            assert!(admission.close(Response::default()).headers().is_empty());
        }
    }

    #[test]
    fn responses_carry_the_state_of_the_limit() {
        let limiter = limiter();
        let admission = limiter.admit_at(0, A, ENDPOINT, LimitedOperation::PurgeQueue, 0).ok().unwrap();
        let response = admission.close(Response::default());
        assert_eq!(response.headers()["ratelimit-policy"], "\"purge-queue\";q=2;w=10");
        assert_eq!(response.headers()["ratelimit"], "\"purge-queue\";r=1;t=10");
        limiter.admit_at(4_000, A, ENDPOINT, LimitedOperation::PurgeQueue, 0).ok().unwrap();
        let refused = limiter
            .admit_at(4_000, A, ENDPOINT, LimitedOperation::PurgeQueue, 0)
            .err()
            .unwrap()
            .into_response();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "6");
        assert_eq!(refused.headers()["ratelimit"], "\"purge-queue\";r=0;t=6");
    }

    #[test]
    fn a_keys_own_limit_holds_for_all_operations_even_if_others_are_off() {
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
    fn idle_entries_are_removed() {
        let limiter = limiter();
        let held = limiter.admit_at(0, OwnerNo(u32::MAX), ENDPOINT, LimitedOperation::Run, 0).ok().unwrap();
        for owner in 0..10 * SWEEP_STEP {
            let now_ms = 20 * owner as u64;
            assert!(
                limiter.admit_at(now_ms, OwnerNo(owner as u32), ENDPOINT, LimitedOperation::Run, 0).is_ok()
            );
        }
        let usages = locked(&limiter.usages);
        assert!(usages.entries <= 3 * SWEEP_STEP, "{} entries", usages.entries);
        assert!(usages.by_owner.contains_key(&OwnerNo(u32::MAX)));
        drop(usages);
        drop(held);
    }
}
