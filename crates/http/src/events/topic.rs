//! The topics of events.

use longshore_model::{ApiKey, EndpointId, Millis, Permission};

use crate::wire::api_error::ApiError;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Jobs,
    Stats,
    /// The part of `stats` about workers and their costs, which readers get who want `stats` and may read the endpoint.
    WorkerStats,
    Workers,
    Endpoints,
    Attention,
    Webhooks,
    Bulk,
    Audit,
}

impl Topic {
    /// The topics that readers name.
    pub(super) const ALL: [Self; 8] = [
        Self::Jobs,
        Self::Stats,
        Self::Workers,
        Self::Endpoints,
        Self::Attention,
        Self::Webhooks,
        Self::Bulk,
        Self::Audit,
    ];

    /// The name of the topic in requests.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Stats | Self::WorkerStats => "stats",
            Self::Workers => "workers",
            Self::Endpoints => "endpoints",
            Self::Attention => "attention",
            Self::Webhooks => "webhooks",
            Self::Bulk => "bulk",
            Self::Audit => "audit",
        }
    }

    /// The name of the topic's events.
    pub(super) fn event_name(self) -> &'static str {
        match self {
            Self::Workers => "worker",
            Self::Endpoints => "endpoint",
            Self::Webhooks => "webhook",
            other => other.as_str(),
        }
    }

    /// The topic that a reader names to get this one.
    pub(super) fn named(self) -> Self {
        if self == Self::WorkerStats { Self::Stats } else { self }
    }

    /// Whether the key may get the topic's events about `endpoint`. An event about no endpoint is about the server.
    pub(super) fn is_permitted(self, key: &ApiKey, endpoint: Option<&EndpointId>, now: Millis) -> bool {
        let permission = match self {
            Self::Jobs | Self::Stats | Self::Webhooks | Self::Bulk => Permission::ReadJobs,
            Self::WorkerStats | Self::Workers | Self::Endpoints | Self::Attention => Permission::ReadCatalog,
            Self::Audit => Permission::WriteCatalog,
        };
        key.permits(permission, endpoint, now)
    }
}

/// The topics in a text such as `jobs,stats`; all if it is empty.
///
/// # Errors
///
/// `bad_parameter` if a word is no topic.
pub(super) fn parse_list(text: &str) -> Result<Vec<Topic>, ApiError> {
    if text.is_empty() {
        return Ok(Topic::ALL.to_vec());
    }
    let topic = |word: &str| Topic::ALL.into_iter().find(|topic| topic.as_str() == word);
    let topics: Option<Vec<_>> = text.split(',').map(|word| topic(word.trim())).collect();
    topics.ok_or_else(|| {
        let names = Topic::ALL.map(Topic::as_str).join(", ");
        ApiError::bad_request("bad_parameter", format!("`topics` must be some of {names}, between commas"))
    })
}
