//! The trail of a request for a change: its key and its fields are noted where they are known, for the entry of the
//! audit log that the request becomes.

use std::cell::RefCell;

use longshore_model::ApiKey;

use super::entry::KeyRef;

/// The number of field names in an entry.
const FIELDS_MAX: usize = 100;

tokio::task_local! {
    static TRAIL: RefCell<Trail>;
}

/// What was noted of one request.
#[derive(Default)]
pub(crate) struct Trail {
    /// The key of the request; `None` if the request had no valid key.
    pub(crate) key: Option<KeyRef>,
    /// The names of the fields that the request sent.
    pub(crate) fields: Vec<String>,
}

/// Runs `task` and returns what was noted meanwhile.
pub(crate) async fn with_trail<T>(task: impl Future<Output = T>) -> (T, Trail) {
    TRAIL.scope(RefCell::default(), async { (task.await, TRAIL.with(RefCell::take)) }).await
}

/// Notes the key of a request for a change, whether or not the key permits the change.
pub(crate) fn note_key(key: &ApiKey) {
    // A request that is not audited has no trail.
    let _ = TRAIL.try_with(|trail| trail.borrow_mut().key = Some(KeyRef::is(key)));
}

/// Notes the names of the fields that a request sent.
pub(crate) fn note_fields<'a>(names: impl Iterator<Item = &'a String>) {
    let _ = TRAIL.try_with(|trail| {
        trail.borrow_mut().fields = names.take(FIELDS_MAX).cloned().collect();
    });
}
