//! The parameters of the API's operations, as its document shows them.

use longshore_model::limits::{
    IDEMPOTENCY_KEY_BYTES_MAX, REQUESTS_LIMIT_DEFAULT, REQUESTS_LIMIT_MAX, STATUS_TTL_MS_MIN,
    STREAM_WAIT_MS_DEFAULT, TTL_MS_MAX, WAIT_MS_DEFAULT, WAIT_MS_MAX, WAIT_MS_MIN,
};
use serde_json::{Value, json};

use super::schemas;

/// One parameter beside those in the path.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    name: &'static str,
    place: &'static str,
    kind: Kind,
    about: &'static str,
}

#[derive(Clone, Copy)]
enum Kind {
    Flag,
    Integer {
        min: u64,
        max: u64,
        default: Option<u64>,
    },
    /// The name of a job's state.
    State,
    /// The id of a job.
    Job,
    /// A text of printable ASCII.
    Printable {
        chars_max: usize,
    },
}

const fn query(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, about }
}

const fn wait_ms(min: u64, default: u64) -> Parameter {
    let kind = Kind::Integer { min, max: WAIT_MS_MAX, default: Some(default) };
    query("wait", kind, "how long the answer may be held, in milliseconds")
}

const WAIT: Parameter = wait_ms(WAIT_MS_MIN, WAIT_MS_DEFAULT);
const IDEMPOTENCY_KEY: Parameter = Parameter {
    name: "Idempotency-Key",
    place: "header",
    kind: Kind::Printable { chars_max: IDEMPOTENCY_KEY_BYTES_MAX },
    about: "the same request with the same key makes no second job",
};

/// `/run`.
pub(super) const RUN: &[Parameter] = &[IDEMPOTENCY_KEY];
/// `/runsync`.
pub(super) const RUN_SYNC: &[Parameter] = &[WAIT, IDEMPOTENCY_KEY];
/// `/status`.
pub(super) const STATUS: &[Parameter] = &[query(
    "ttl",
    Kind::Integer { min: STATUS_TTL_MS_MIN, max: TTL_MS_MAX, default: None },
    "deletes the job so many milliseconds from now",
)];
/// `/status-sync`.
pub(super) const STATUS_SYNC: &[Parameter] = &[WAIT];
/// `/stream`.
pub(super) const STREAM: &[Parameter] = &[
    wait_ms(0, STREAM_WAIT_MS_DEFAULT),
    query(
        "offset",
        Kind::Integer { min: 0, max: u64::MAX, default: None },
        "reads from this chunk on, and leaves what it reads for others",
    ),
];
/// `/requests`.
pub(super) const PAGE: &[Parameter] = &[
    query("status", Kind::State, "only jobs in this state"),
    query(
        "limit",
        Kind::Integer {
            min: 1,
            max: REQUESTS_LIMIT_MAX as u64,
            default: Some(REQUESTS_LIMIT_DEFAULT as u64),
        },
        "how many jobs at most",
    ),
    query("cursor", Kind::Job, "the `cursor` of the page before"),
];
/// What is shown beside an endpoint.
pub(super) const INCLUDE: &[Parameter] = &[
    query("includeTemplate", Kind::Flag, "shows the template of an endpoint in it"),
    query("includeWorkers", Kind::Flag, "shows the workers of an endpoint in it"),
];
/// The deletion of an endpoint.
pub(super) const DRAIN: &[Parameter] = &[query("drain", Kind::Flag, "waits for the jobs that run")];

impl Parameter {
    /// As the document shows it.
    pub(super) fn describe(&self) -> Value {
        json!({ "name": self.name, "in": self.place, "schema": self.schema(), "description": self.about })
    }

    fn schema(&self) -> Value {
        match self.kind {
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Integer { min, max, default: None } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Kind::Integer { min, max, default } => {
                json!({ "type": "integer", "minimum": min, "maximum": max, "default": default })
            }
            Kind::State => schemas::states(),
            Kind::Job => schemas::job_id(),
            Kind::Printable { chars_max } => {
                json!({ "type": "string", "minLength": 1, "maxLength": chars_max, "pattern": "^[!-~]([ -~]*[!-~])?$" })
            }
        }
    }
}
