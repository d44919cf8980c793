//! The operations on an endpoint whose requests have limits.

use crate::Field;

/// An operation on an endpoint, or several that share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitedOperation {
    /// Requests to `/runsync` of an endpoint.
    Runsync,
    /// Requests to `/run` of an endpoint.
    Run,
    /// Requests to `/status` and `/status-sync` of an endpoint.
    Status,
    /// Requests to `/stream` of an endpoint.
    Stream,
    /// Requests to `/cancel` and `/retry` of an endpoint.
    Cancel,
    /// Requests to `/purge-queue` of an endpoint.
    PurgeQueue,
    /// Requests to `/openai` of an endpoint.
    Openai,
    /// Requests to `/requests` of an endpoint.
    Requests,
    /// Requests to `/webhooks` of an endpoint.
    Webhooks,
    /// Requests that are forwarded to workers.
    Lb,
}

impl LimitedOperation {
    /// Every operation, in the order of the variants.
    pub const ALL: [Self; 10] = [
        Self::Runsync,
        Self::Run,
        Self::Status,
        Self::Stream,
        Self::Cancel,
        Self::PurgeQueue,
        Self::Openai,
        Self::Requests,
        Self::Webhooks,
        Self::Lb,
    ];

    /// The name of the limit in responses.
    pub fn as_str(self) -> &'static str {
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
            Self::Lb => "lb",
        }
    }

    /// Whether the operation submits, reads or ends jobs, of which a load-balancing endpoint has none.
    pub fn is_of_jobs(self) -> bool {
        !matches!(self, Self::Openai | Self::Requests | Self::Webhooks | Self::Lb)
    }

    /// Whether the operation submits a job. Nearly all of OpenAI's routes do.
    pub fn is_submit(self) -> bool {
        matches!(self, Self::Run | Self::Runsync | Self::Openai)
    }

    /// The field of a record that counts its requests over a limit.
    pub fn field(self) -> Field {
        match self {
            Self::Runsync => Field::LimitedRunsync,
            Self::Run => Field::LimitedRun,
            Self::Status => Field::LimitedStatus,
            Self::Stream => Field::LimitedStream,
            Self::Cancel => Field::LimitedCancel,
            Self::PurgeQueue => Field::LimitedPurgeQueue,
            Self::Openai => Field::LimitedOpenai,
            Self::Requests => Field::LimitedRequests,
            Self::Webhooks => Field::LimitedWebhooks,
            Self::Lb => Field::LimitedLb,
        }
    }
}
