//! The health checks of one worker.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use longshore_fleet::{Check, WorkerHealth, WorkerKey};
use tokio::time::{Instant, sleep, timeout};

use super::links::stream_to;
use super::{BalancedServer, Balancer};
use crate::supervisor::FleetEvent;

/// The longest time of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between checks of a worker that does not answer yet: a connection that is refused costs little.
const STARTING_PAUSE: Duration = Duration::from_millis(250);
/// The pause between checks of a worker that answers that it is not ready.
const INITIALIZING_PAUSE: Duration = Duration::from_secs(2);
/// The pause between checks of every other worker.
const PAUSE: Duration = Duration::from_secs(5);

/// Checks a worker until it is removed. One that was healthy and is not for `startPatienceMs` is replaced.
pub(super) async fn run(balancer: Weak<Balancer>, key: WorkerKey, worker: Arc<BalancedServer>) {
    let mut unhealthy_since = None;
    loop {
        let Some((path, patience)) = balancer.upgrade().and_then(|balancer| settings(&balancer)) else {
            return;
        };
        let CheckResult { check, is_rejected, text } = check(&worker, &path).await;
        let Some(balancer) = balancer.upgrade() else { return };
        worker.note_check(&text, is_rejected.then(|| balancer.now()));
        let Some(health) = balancer.observe(key, &worker, check) else { return };
        let since =
            (health == WorkerHealth::Unhealthy).then(|| *unhealthy_since.get_or_insert_with(Instant::now));
        unhealthy_since = since;
        if since.is_some_and(|since| since.elapsed() >= patience) {
            let (id, seconds) = (worker.id().clone(), patience.as_secs());
            let reason = format!("worker {id} was unhealthy for {seconds} s; its last check: {text}");
            balancer.notify(FleetEvent::Replace { worker: id, reason });
            unhealthy_since = None;
        }
        drop(balancer);
        sleep(match health {
            WorkerHealth::Starting => STARTING_PAUSE,
            WorkerHealth::Initializing => INITIALIZING_PAUSE,
            WorkerHealth::Healthy | WorkerHealth::Unhealthy => PAUSE,
        })
        .await;
    }
}

/// The path of the checks, and how long a worker may be unhealthy; `None` if the endpoint is deleted.
fn settings(balancer: &Balancer) -> Option<(String, Duration)> {
    let record = balancer.record()?;
    let path = record.balances()?.health_path.clone();
    Some((path, Duration::from_millis(record.start_patience_ms)))
}

struct CheckResult {
    check: Check,
    /// The worker answered neither "healthy" nor "not yet". 503 may mean "not yet".
    is_rejected: bool,
    text: String,
}

/// Asks the worker once for `path`. Without an answer within 2 s, the check has failed.
async fn check(worker: &BalancedServer, path: &str) -> CheckResult {
    let failed = |reason: String| CheckResult {
        check: Check::Failed,
        is_rejected: false,
        text: format!("GET {path}: {reason}"),
    };
    match timeout(CHECK_TIMEOUT, status(worker, path)).await {
        Err(_) => failed(format!("no answer within {} s", CHECK_TIMEOUT.as_secs())),
        Ok(Err(reason)) => failed(reason),
        Ok(Ok(status)) => {
            let check = match status {
                StatusCode::OK => Check::Healthy,
                StatusCode::NO_CONTENT => Check::Initializing,
                _ => Check::Failed,
            };
            let is_rejected = check == Check::Failed && status != StatusCode::SERVICE_UNAVAILABLE;
            CheckResult { check, is_rejected, text: format!("GET {path}: {status}") }
        }
    }
}

async fn status(worker: &BalancedServer, path: &str) -> Result<StatusCode, String> {
    let address = worker.health_address();
    let stream = stream_to(address).await.map_err(|error| error.to_string())?;
    let text = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(text)?;
    let request = Request::get(path)
        .header(HOST, address.to_string())
        .header(USER_AGENT, "longshore-health")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let mut answer = pin!(sender.send_request(request));
    tokio::select! {
        biased;
        answered = &mut answer => Ok(answered.map_err(text)?.status()),
        // The answer may have come with the end of the connection; otherwise the request fails now.
        _ended = connection => Ok(answer.await.map_err(text)?.status()),
    }
}
