//! Where an audit log is kept.

use std::io;

/// A line of the log: the id of its entry, which increases from line to line, and the entry as JSON without a newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// The id of the entry.
    pub id: u64,
    /// The entry as JSON.
    pub json: Vec<u8>,
}

/// Runs of lines: the newest run first, and in each run the oldest line first. Lines end with a newline.
pub type AuditRuns<'a> = Box<dyn Iterator<Item = io::Result<Vec<u8>>> + 'a>;

/// Keeps the lines of an audit log, and drops the oldest ones when there are too many. All calls block.
pub trait AuditStorage: Send + Sync + 'static {
    /// The id of the last line; 0 if there is none.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    fn last_id(&self) -> io::Result<u64>;
    /// Appends lines, and returns when they are durable.
    ///
    /// # Errors
    ///
    /// - [`io::ErrorKind::AlreadyExists`] if another server has written a line with such an id. Nothing is written.
    /// - Any other error if the lines cannot be written.
    fn append(&self, lines: &[AuditLine]) -> io::Result<()>;
    /// The name of the log in the database of the rows, so that a line can be committed together with the change that it is about.
    /// `None`: lines are appended after the change.
    fn name_in_store(&self) -> Option<&'static str> {
        None
    }
    /// Replaces the line with the same id, which was committed with a change. Without such a line nothing happens.
    ///
    /// # Errors
    ///
    /// The line cannot be written, or the log has no name in a database.
    fn replace(&self, line: &AuditLine) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("line {} is final", line.id)))
    }
    /// The lines, of which those with an id of `before` or more may be missing.
    fn runs(&self, before: Option<u64>) -> AuditRuns<'_>;
}
