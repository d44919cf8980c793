//! The audit log: who changed what under `/v1`, and from where keys are used.
//!
//! Kept as JSON lines in files that are rotated. A change is written and synced before it is answered, as long as the
//! disk takes less than a second: then the answer leaves, and the line follows. Values are never in it, only names of
//! fields. What nobody with a key of ours asked for is not in it either: strangers could fill it.

mod entry;
mod files;
mod query;
mod trail;
mod writer;

pub(crate) use entry::Entry;
pub(crate) use query::{AuditPage, Filter};
pub(crate) use trail::{note_fields, note_key, with_trail};
pub use writer::AuditLog;
