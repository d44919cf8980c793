//! What the clients of an endpoint send, for the words of the texts: jobs of a queue, or requests that are forwarded.

/// What waits at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Jobs, which workers ask for.
    Jobs,
    /// Requests, which healthy workers get.
    Requests,
}

impl Work {
    /// One of them, as a noun.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Jobs => "job",
            Self::Requests => "request",
        }
    }

    /// What a worker did not do that did not become ready.
    pub(super) fn was_not_ready(self) -> &'static str {
        match self {
            Self::Jobs => "asked for no job",
            Self::Requests => "was not healthy",
        }
    }

    /// What a starting worker must not do for too long.
    pub(super) fn is_not_ready(self) -> &'static str {
        match self {
            Self::Jobs => "asks for no job",
            Self::Requests => "is not healthy",
        }
    }

    /// Why a worker exits with code 0 before it is ready.
    pub(super) fn ended_by_itself(self) -> &'static str {
        match self {
            Self::Jobs => " Its program ended by itself: the handler must call `runpod.serverless.start(…)`.",
            Self::Requests => " Its program ended by itself: it must serve HTTP on the port in `PORT`.",
        }
    }

    /// The setting that limits how many of them wait.
    pub(super) fn queue_limit(self) -> &'static str {
        match self {
            Self::Jobs => "maxQueueLength",
            Self::Requests => "lb.queueMax",
        }
    }
}
