//! The error that stops `dev`, as text for the user.

use crate::exit::{CommandError, CommandExit};

/// What failed and what to do, with optional lines such as the end of a log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct DevError {
    pub(crate) message: String,
    /// Lines shown below the message, unchanged.
    pub(crate) lines: Vec<String>,
    /// Whether the server does not accept the key for the request.
    pub(crate) is_unauthorized: bool,
}

impl DevError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lines: Vec::new(), is_unauthorized: false }
    }

    pub(crate) fn with_lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.lines.extend(lines);
        self
    }
}

impl From<DevError> for CommandError {
    fn from(error: DevError) -> Self {
        Self::new(CommandExit::Failure, error.message).with_lines(error.lines)
    }
}

impl From<longshore_client::ClientError> for DevError {
    fn from(error: longshore_client::ClientError) -> Self {
        let is_unauthorized = matches!(error, longshore_client::ClientError::Refused { status: 401, .. });
        Self { is_unauthorized, ..Self::new(error.to_string()) }
    }
}
