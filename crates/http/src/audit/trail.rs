//! The trail of a request for a change: its key and the names of its fields. Handlers note them in a task-local, from which
//! the entry of the audit log is made.

use std::cell::RefCell;

use longshore_engine::noted_as_here;
use longshore_model::ApiKey;

use super::entry::KeyRef;

/// Most field names in an entry; further ones are left out.
const FIELDS_MAX: usize = 100;

tokio::task_local! {
    static TRAIL: RefCell<Trail>;
}

/// The key and the fields of one request, as far as they were noted.
#[derive(Clone, Default)]
pub(crate) struct Trail {
    /// The key of the request; `None` if the request had no valid key.
    pub(crate) key: Option<KeyRef>,
    /// The names of the fields that the request sent.
    pub(crate) fields: Vec<String>,
    /// The first 8 characters of the session's id, if the console sent the request.
    pub(crate) session: Option<String>,
}

/// Runs `task` and returns its result with the trail that it noted.
pub(crate) async fn with_trail<T>(task: impl Future<Output = T>) -> (T, Trail) {
    TRAIL.scope(RefCell::default(), async { (task.await, TRAIL.with(RefCell::take)) }).await
}

/// Runs `task`, which another task polls, as a part of the present request: with what the request has noted so far.
pub(crate) fn continued<T>(task: impl Future<Output = T>) -> impl Future<Output = T> {
    noted_as_here(TRAIL.scope(RefCell::new(trail_so_far()), task))
}

/// The trail that the present request has noted so far; empty for a request that is not audited.
pub(crate) fn trail_so_far() -> Trail {
    TRAIL.try_with(|trail| trail.borrow().clone()).unwrap_or_default()
}

/// Notes the key of a request for a change, whether or not the key permits the change.
pub(crate) fn note_key(key: &ApiKey) {
    // A request that is not audited has no trail.
    let _ = TRAIL.try_with(|trail| trail.borrow_mut().key = Some(KeyRef::is(key)));
}

/// Notes the session of a request, by its id.
pub(crate) fn note_session(id: &str) {
    let _ = TRAIL.try_with(|trail| trail.borrow_mut().session = id.get(..8).map(str::to_owned));
}

/// Notes the names of the fields that a request sent.
pub(crate) fn note_fields<'a>(names: impl Iterator<Item = &'a String>) {
    let _ = TRAIL.try_with(|trail| {
        trail.borrow_mut().fields = names.take(FIELDS_MAX).cloned().collect();
    });
}
