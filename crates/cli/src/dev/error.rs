//! What stops `dev`, in words for the person who typed it.

use crate::exit::{CommandError, CommandExit};

/// A sentence that says what is wrong and what to do, and perhaps lines to look at.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct DevError {
    pub(crate) message: String,
    /// Shown below the message as they are.
    pub(crate) lines: Vec<String>,
}

impl DevError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lines: Vec::new() }
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
        Self::new(error.to_string())
    }
}
