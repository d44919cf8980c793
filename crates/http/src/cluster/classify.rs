//! What a node may do with a request when the owner is lost before it answered.
//!
//! A request is sent again only if the second one cannot change more than the first: reads, submits under the id that this node
//! gave the job, takes (a job that was handed out and not confirmed comes back), reports (the first good result counts), and chunks
//! under the number that this node gave the post.

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
    /// It may under the number that this node gives it: a post of chunks.
    Post,
    /// It may, as it came, if it has no body: a worker of a load-balancing endpoint gets it, and its body passes as it comes.
    WithoutBody,
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
    /// How a response that has begun goes on with the next owner.
    pub(super) goes_on: GoesOn,
}

/// How a response that has begun goes on when the owner is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GoesOn {
    /// It breaks off, and the client has to ask again.
    No,
    /// Its events have numbers, and the next owner sends those after the last one.
    Events,
    /// It comes in frames, see [`crate::wire::frames`].
    Frames,
}

const ONCE: Class = Class {
    repeat: Repeat::Never,
    body_bytes_max: 0,
    patience: PATIENCE,
    hands_over: false,
    closes: false,
    goes_on: GoesOn::No,
};
/// A request for a worker of a load-balancing endpoint, which is sent again as `Balancer` does: see [`may_send_again`].
///
/// [`may_send_again`]: longshore_engine::may_send_again
const FORWARDED: Class = Class { repeat: Repeat::WithoutBody, ..ONCE };
const AGAIN: Class = Class { repeat: Repeat::Always, body_bytes_max: MANAGEMENT_BODY_BYTES_MAX, ..ONCE };

impl Class {
    /// The class of a request. `base` is what requests may have before their path, and `wants_events` whether its client accepts
    /// server-sent events.
    pub(super) fn of(method: &Method, uri: &Uri, base: &str, wants_events: bool) -> Self {
        let path = without_base(uri.path(), base).filter(|_| !base.is_empty()).unwrap_or(uri.path());
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match segments.as_slice() {
            ["sdk", "v2", _, rest @ ..] | ["v2", _, rest @ ..] => {
                Self::of_job(method, uri, rest, wants_events)
            }
            ["openai", ..] => Self::of_openai(method),
            ["lb", ..] => Self::of_forwarded(method),
            _ if is_read(method) => AGAIN,
            _ => ONCE,
        }
    }

    /// The class of a request for a worker of a load-balancing endpoint.
    pub(super) fn of_forwarded(method: &Method) -> Self {
        if is_read(method) { FORWARDED } else { ONCE }
    }

    /// Whether a worker waits for a job.
    pub(super) fn is_poll(self) -> bool {
        self.hands_over && self.closes
    }

    fn of_job(method: &Method, uri: &Uri, rest: &[&str], wants_events: bool) -> Self {
        let (is_post, is_get) = (method == Method::POST, method == Method::GET);
        let submit = |sync, body_bytes_max| Self { repeat: Repeat::Submit { sync }, body_bytes_max, ..ONCE };
        match rest.first().copied().unwrap_or_default() {
            "run" if is_post => submit(false, RUN_BODY_BYTES_MAX),
            "runsync" if is_post => submit(true, RUNSYNC_BODY_BYTES_MAX),
            "openai" => Self::of_openai(method),
            "status" | "status-sync" | "cancel" | "ping" => AGAIN,
            "stream" if wants_events => Self { goes_on: GoesOn::Events, ..AGAIN },
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
            "job-stream" if is_post => Self {
                repeat: Repeat::Post,
                body_bytes_max: WORKER_BODY_BYTES_MAX,
                patience: REPORT_PATIENCE,
                ..ONCE
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
                goes_on: GoesOn::Frames,
                ..ONCE
            },
            _ if is_read(method) => AGAIN,
            _ => ONCE,
        }
    }
}

/// Whether a request changes nothing.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn has_offset(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| part.starts_with("offset=")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat(method: &str, uri: &str) -> Repeat {
        Class::of(&method.parse().unwrap(), &uri.parse().unwrap(), "/base", false).repeat
    }

    #[test]
    fn streams_go_on_if_the_next_owner_can_tell_where() {
        let class = |method: &str, uri: &str, wants_events| {
            Class::of(&method.parse().unwrap(), &uri.parse().unwrap(), "/base", wants_events)
        };
        for (method, uri, wants_events, expected) in [
            ("GET", "/v2/e/stream/j", true, GoesOn::Events),
            ("POST", "/base/sdk/v2/e/stream/j", true, GoesOn::Events),
            ("GET", "/v2/e/stream/j", false, GoesOn::No),
            ("GET", "/v1/events", true, GoesOn::No),
            ("POST", "/v2/e/openai/v1/chat/completions", false, GoesOn::Frames),
            ("POST", "/openai/v1/completions", true, GoesOn::Frames),
            ("GET", "/openai/v1/models", true, GoesOn::No),
        ] {
            assert_eq!(class(method, uri, wants_events).goes_on, expected, "{method} {uri}");
        }
        // Events remove no chunks.
        assert_eq!(class("GET", "/v2/e/stream/j", true).repeat, Repeat::Always);
    }

    #[test]
    fn what_may_be_sent_again_is_listed() {
        use Repeat::{Always, Never, Post, Submit, WithoutBody};
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
            ("POST", "/v2/e/job-stream/w/j", Post),
            ("POST", "/base/v2/e/job-stream/w/j?gpu=x", Post),
            ("GET", "/v1/endpoints", Always),
            ("POST", "/v1/endpoints", Never),
            ("PATCH", "/v1/endpoints/e", Never),
            ("DELETE", "/v1/endpoints/e", Never),
            ("POST", "/graphql", Never),
            ("GET", "/lb/e/x", WithoutBody),
            ("OPTIONS", "/base/lb/e/x", WithoutBody),
            ("POST", "/lb/e/x", Never),
            ("OPTIONS", "/v2/e/run", Always),
        ] {
            assert_eq!(repeat(method, uri), expected, "{method} {uri}");
        }
    }
}
