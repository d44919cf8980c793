//! Searches the audit log, newest entries first.

use std::io;

use super::entry::Entry;
use super::storage::AuditStorage;

/// The conditions that entries must meet, and their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// The resource: `endpoints/<id>`, or `endpoints` for all of them.
    pub(crate) resource: Option<String>,
    /// The id of the key.
    pub(crate) key: Option<String>,
    /// The earliest time, RFC 3339 in UTC.
    pub(crate) since: Option<String>,
    /// Only entries with a smaller id.
    pub(crate) before: Option<u64>,
    /// Most entries to return.
    pub(crate) limit: usize,
}

/// Entries, and whether older entries meet the conditions.
#[derive(Debug, Default)]
pub(crate) struct AuditPage {
    pub(crate) entries: Vec<Entry>,
    pub(crate) more: bool,
}

impl Filter {
    fn fits(&self, entry: &Entry) -> bool {
        let about = |wanted: &String| {
            entry.resource.as_ref().is_some_and(|resource| {
                resource
                    .strip_prefix(wanted.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        self.before.is_none_or(|before| entry.id < before)
            && self.resource.as_ref().is_none_or(about)
            && self.key.as_ref().is_none_or(|key| entry.key.as_ref().is_some_and(|by| by.id == *key))
    }

    fn is_too_old(&self, entry: &Entry) -> bool {
        self.since.as_ref().is_some_and(|since| entry.at < *since)
    }
}

/// Searches the log from the newest entry to the oldest. A run may come twice; entries that were seen are recognized by their
/// ids.
pub(super) fn find(storage: &dyn AuditStorage, filter: &Filter) -> io::Result<AuditPage> {
    let mut found = AuditPage::default();
    for run in storage.runs(filter.before) {
        for entry in Entry::of_lines(&run?).into_iter().rev() {
            if filter.is_too_old(&entry) {
                return Ok(found);
            }
            let is_new = found.entries.last().is_none_or(|last: &Entry| entry.id < last.id);
            if !is_new || !filter.fits(&entry) {
                continue;
            }
            if found.entries.len() == filter.limit {
                found.more = true;
                return Ok(found);
            }
            found.entries.push(entry);
        }
    }
    Ok(found)
}
