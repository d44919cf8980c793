//! What a node may do with a request when the owner is lost before it answered.
//!
//! A request is sent again only if the second one cannot change more than the first: reads, submits under the id that this node
//! gave the job, takes (a job that was handed out and not confirmed comes back), and reports (the first good result counts).

use std::time::Duration;

use http::{Method, Uri};
use longshore_model::limits::{
    MANAGEMENT_BODY_BYTES_MAX, RUN_BODY_BYTES_MAX, RUNSYNC_BODY_BYTES_MAX, WORKER_BODY_BYTES_MAX,
};

use crate::wire::base_path::without_base;

/// How long a request waits for an owner.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for a report: the worker SDK discards a result that is refused.
const REPORT_PATIENCE: Duration = Duration::from_secs(30);

/// Whether a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It may, as it came.
    Always,
    /// It may under the job id that this node chooses; `sync` marks the id.
    Submit { sync: bool },
    /// It may not, once it was sent.
    Never,
}

/// What a node needs to know of a request to pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) repeat: Repeat,
    /// The most bytes of the body that are kept for a repetition.
    pub(super) body_bytes_max: usize,
    /// How long it waits for an owner.
    pub(super) patience: Duration,
    /// A client that has ended its sending has disconnected: see [`crate::gate::peer::hands_over`].
    pub(super) hands_over: bool,
    /// Its connection closes after the response, unless the worker asks to keep it.
    pub(super) closes: bool,
}

const ONCE: Class =
    Class { repeat: Repeat::Never, body_bytes_max: 0, patience: PATIENCE, hands_over: false, closes: false };
const AGAIN: Class = Class { repeat: Repeat::Always, body_bytes_max: MANAGEMENT_BODY_BYTES_MAX, ..ONCE };

impl Class {
    /// The class of a request. `base` is what requests may have before their path.
    pub(super) fn of(method: &Method, uri: &Uri, base: &str) -> Self {
        let path = without_base(uri.path(), base).filter(|_| !base.is_empty()).unwrap_or(uri.path());
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match segments.as_slice() {
            ["sdk", "v2", _, rest @ ..] | ["v2", _, rest @ ..] => Self::of_job(method, uri, rest),
            ["openai", ..] => Self::of_openai(method),
            _ => Self::of_unknown(method),
        }
    }

    /// The class of a request of which only the method is known.
    pub(super) fn of_unknown(method: &Method) -> Self {
        if is_read(method) { AGAIN } else { ONCE }
    }

    /// Whether a worker waits for a job.
    pub(super) fn is_poll(self) -> bool {
        self.hands_over && self.closes
    }

    fn of_job(method: &Method, uri: &Uri, rest: &[&str]) -> Self {
        let (is_post, is_get) = (method == Method::POST, method == Method::GET);
        let submit = |sync, body_bytes_max| Self { repeat: Repeat::Submit { sync }, body_bytes_max, ..ONCE };
        match rest.first().copied().unwrap_or_default() {
            "run" if is_post => submit(false, RUN_BODY_BYTES_MAX),
            "runsync" if is_post => submit(true, RUNSYNC_BODY_BYTES_MAX),
            "openai" => Self::of_openai(method),
            "status" | "status-sync" | "cancel" | "ping" => AGAIN,
            // Without an offset, the response removes the chunks that it has.
            "stream" if has_offset(uri) => AGAIN,
            "stream" => Self { hands_over: true, ..ONCE },
            "job-take" | "job-take-batch" if is_get => Self { hands_over: true, closes: true, ..AGAIN },
            "job-stop" => Self { closes: true, ..AGAIN },
            "job-done" => Self {
                body_bytes_max: WORKER_BODY_BYTES_MAX,
                patience: REPORT_PATIENCE,
                closes: true,
                ..AGAIN
            },
            _ if is_read(method) => AGAIN,
            _ => ONCE,
        }
    }

    fn of_openai(method: &Method) -> Self {
        match *method {
            Method::POST => Self {
                repeat: Repeat::Submit { sync: true },
                body_bytes_max: RUN_BODY_BYTES_MAX,
                hands_over: true,
                ..ONCE
            },
            _ if is_read(method) => AGAIN,
            _ => ONCE,
        }
    }
}

/// Whether a request changes nothing.
fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn has_offset(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("offset=")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat(method: &str, uri: &str) -> Repeat {
        Class::of(&method.parse().unwrap(), &uri.parse().unwrap(), "/base").repeat
    }

    #[test]
    fn what_may_be_sent_again_is_listed() {
        use Repeat::{Always, Never, Submit};
        for (method, uri, expected) in [
            ("POST", "/v2/e/run", Submit { sync: false }),
            ("POST", "//v2/e/run/", Submit { sync: false }),
            ("POST", "/base/v2/e/runsync?wait=5", Submit { sync: true }),
            ("POST", "/sdk/v2/e/run", Submit { sync: false }),
            ("POST", "/v2/e/openai/v1/chat/completions", Submit { sync: true }),
            ("POST", "/openai/v1/completions", Submit { sync: true }),
            ("GET", "/openai/v1/models", Always),
            ("GET", "/v2/e/status/j", Always),
            ("POST", "/v2/e/status/j", Always),
            ("GET", "/v2/e/status-sync/j", Always),
            ("GET", "/v2/e/stream/j?offset=0", Always),
            ("GET", "/v2/e/stream/j", Never),
            ("POST", "/v2/e/stream/j?x=offset=1", Never),
            ("GET", "/v2/e/health", Always),
            ("GET", "/v2/e/requests", Always),
            ("POST", "/v2/e/cancel/j", Always),
            ("POST", "/v2/e/retry/j", Never),
            ("POST", "/v2/e/purge-queue", Never),
            ("POST", "/v2/e/webhooks/redeliver", Never),
            ("GET", "/v2/e/job-take/w", Always),
            ("GET", "/v2/e/job-take-batch/w", Always),
            ("GET", "/v2/e/ping/w", Always),
            ("GET", "/v2/e/job-stop/w", Always),
            ("POST", "/v2/e/job-done/w/j", Always),
            ("POST", "/v2/e/job-stream/w/j", Never),
            ("GET", "/v1/endpoints", Always),
            ("POST", "/v1/endpoints", Never),
            ("PATCH", "/v1/endpoints/e", Never),
            ("DELETE", "/v1/endpoints/e", Never),
            ("POST", "/graphql", Never),
            ("GET", "/lb/e/x", Always),
            ("POST", "/lb/e/x", Never),
            ("OPTIONS", "/v2/e/run", Always),
        ] {
            assert_eq!(repeat(method, uri), expected, "{method} {uri}");
        }
    }
}
