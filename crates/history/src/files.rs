//! The files of the history: a log that grows by a block each minute, and closed logs by endpoint.
//!
//! ```text
//!   history/minutes/2030-01-31.log   blocks of minutes, appended; the present day
//!   history/minutes/2030-01-30.day   the same by endpoint, packed, with an index
//!   history/hours/2030-01.log        blocks of hours, appended when a day is closed
//!   history/hours/2029-12.month      the same by endpoint, packed, with an index
//! ```
//!
//! A log beside its closed form adds to it: the clock was set back, or the server was killed while it closed the log. What
//! both have counts once.

mod block;
mod calendar;
mod closed;
mod folder;
mod log;
mod reader;

pub(crate) use block::Block;
pub(crate) use folder::{Folder, Unit};
