//! Whether the server does all of its work, and why not: for `/readyz` and `/v1/server`.

use longshore_model::Millis;

use crate::HttpState;
use crate::wire::rfc3339::rfc3339;

/// Whether the server does all of its work.
pub(crate) enum Readiness {
    /// All queues are loaded, changes can be stored, and jobs are handed out.
    Ready,
    /// The queues of some endpoints are not loaded yet: requests to them wait.
    Loading,
    /// The store cannot write, or the disk has too little space, for this reason: changes or submits are refused.
    ReadOnly(String),
    /// It hands out no job, since this time.
    Draining(Millis),
}

impl Readiness {
    /// The present state. Writes to a store that could not write before, at most once per second.
    pub(crate) async fn of(state: &HttpState) -> Self {
        let engine = state.engine();
        if !engine.is_ready() {
            return Self::Loading;
        }
        let has_lease = state.node().is_none_or(|node| !node.membership.lease_left().is_zero());
        if !has_lease {
            // A store that nothing is written to does not notice.
            return Self::ReadOnly("the database does not answer".to_owned());
        }
        let fault = engine.store_fault().await.or_else(|| engine.space_shortage());
        match (fault, engine.draining_since()) {
            (Some(fault), _) => Self::ReadOnly(fault),
            (None, Some(since)) => Self::Draining(since),
            (None, None) => Self::Ready,
        }
    }

    /// [`Readiness::reason`] for requests without a key: names no file and no folder.
    pub(crate) fn public_reason(&self) -> Option<String> {
        match self {
            Self::ReadOnly(fault) => Some(format!("changes cannot be stored: {}", public_fault(fault))),
            _ => self.reason(),
        }
    }

    /// The word for it in `/v1/server`.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Loading => "LOADING",
            Self::ReadOnly(_) => "READ_ONLY",
            Self::Draining(_) => "DRAINING",
        }
    }

    /// Every word, for the API's document.
    pub(crate) const WORDS: [&str; 4] = ["READY", "LOADING", "READ_ONLY", "DRAINING"];

    /// Why the server does not do all of its work; `None` if it does.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::Ready => None,
            Self::Loading => Some("the server is still loading its endpoints".to_owned()),
            Self::ReadOnly(fault) => Some(format!("changes cannot be stored: {fault}")),
            Self::Draining(since) => Some(format!(
                "the server is draining since {}: it accepts jobs and hands out none, until \
                 `longshore drain --end` or a restart",
                rfc3339(*since)
            )),
        }
    }
}

/// Why changes cannot be stored, without the names of files and folders, which are in the log and in `/v1/server`.
pub(crate) fn public_fault(fault: &str) -> &'static str {
    if fault.contains("full") || fault.contains("No space left") {
        "the server's disk is full; `longshore server` and the log name the folder"
    } else if fault.contains("database does not answer") {
        "the database does not answer"
    } else {
        "the server cannot write to its disk; `longshore server` and the log say why"
    }
}
