//! What can go wrong between a client and its server.

/// A call did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no, and why.
    #[error("{message} (HTTP {status}, {code})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The reason as a word for programs, for example `unknown_endpoint`.
        code: String,
        /// The reason as a sentence for people.
        message: String,
    },
    /// No connection, or it broke.
    #[error("cannot reach {url}: {cause}")]
    Unreachable {
        /// The address that was tried.
        url: String,
        /// The innermost reason.
        cause: String,
    },
    /// No answer came in time.
    #[error("{url} did not answer within {seconds} s")]
    TimedOut {
        /// The address that was asked.
        url: String,
        /// How long the client waited.
        seconds: u64,
    },
    /// The answer is not what this client understands: most likely not a Longshore server, or another version.
    #[error("{url} gave an answer that makes no sense here: {cause}")]
    Unexpected {
        /// The address that was asked.
        url: String,
        /// What is wrong with the answer.
        cause: String,
    },
    /// The server's address or the key cannot be used in a request.
    #[error("{0}")]
    Unusable(String),
}

impl ClientError {
    /// Whether the server answered that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}
