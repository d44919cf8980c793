//! The audit log: who changed what under `/v1`, and from where keys are used.
//!
//! The log is JSON lines in rotated files, or in a table of the database. In a table, the entry of a change is committed together
//! with the change, and gets the status of the response afterwards. In files, a change is written and synced before its response
//! is sent, but a response waits for at most one second. Entries have the names of the changed fields, never their values. Requests without a
//! valid key are not logged, so that clients without a key cannot fill the log.

mod committed;
mod entry;
mod files;
mod query;
mod storage;
mod trail;
mod writer;

pub(crate) use committed::CommittedEntry;
pub(crate) use entry::Entry;
pub(crate) use query::{AuditPage, Filter};
pub use storage::{AuditLine, AuditRuns, AuditStorage};
pub(crate) use trail::{Trail, continued, note_fields, note_key, note_session, with_trail};
pub use writer::AuditLog;
