//! The errors of calls to a server.

use longshore_trust::TlsProblem;

/// Why a call did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused the request.
    #[error("{message} (HTTP {status}, {code})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The reason for programs, for example `endpoint_not_found`.
        code: String,
        /// The reason for people.
        message: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error("cannot reach {url}: {cause}")]
    Unreachable {
        /// The address of the request.
        url: String,
        /// The innermost cause.
        cause: String,
    },
    /// The TLS connection to the server was not made.
    #[error("cannot reach {url}: {problem}")]
    Tls {
        /// The address of the request.
        url: String,
        /// Why the connection was not made.
        problem: TlsProblem,
    },
    /// The response to a request over `http://` is not HTTP, or demands HTTPS: usually the server expects TLS.
    #[error("cannot reach {url}: the server does not speak plain HTTP here")]
    NotHttp {
        /// The address of the request.
        url: String,
    },
    /// No response came in time.
    #[error("{url} did not answer within {seconds} s")]
    TimedOut {
        /// The address of the request.
        url: String,
        /// How long the client waited, in s.
        seconds: u64,
    },
    /// The response is not one that this client understands: usually the server is another program or version.
    #[error("{url} gave an unexpected response: {cause}")]
    Unexpected {
        /// The address of the request.
        url: String,
        /// What is wrong with the response.
        cause: String,
    },
    /// The server's address, the key or a file with certificate authorities cannot be used.
    #[error("{0}")]
    Unusable(String),
}

impl ClientError {
    /// Whether the server answered 404.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}
