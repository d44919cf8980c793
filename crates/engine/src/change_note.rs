//! The note of a change: a line of the log of changes that is committed together with the change, by a store that keeps logs.

use std::sync::Arc;

use longshore_model::JsonRowKind;
use longshore_store::{LogLine, Write};

tokio::task_local! {
    static NOTE: Arc<dyn ChangeNote>;
}

/// Says what the log of changes has of a task's changes.
pub trait ChangeNote: Send + Sync {
    /// The line of the change that is being committed. `made` is the id of what the change creates or replaces. `None` if the log
    /// has a line of the task's changes already.
    fn line(&self, made: Option<String>) -> Option<LogLine>;
    /// Notes that the line was committed with its change.
    fn committed(&self);
}

/// Runs a task whose changes are noted. A store that keeps no logs has none of the notes.
pub async fn noted<T>(note: Arc<dyn ChangeNote>, task: impl Future<Output = T>) -> T {
    NOTE.scope(note, task).await
}

/// Has the changes of `task`, which another task runs, noted as those of the present task.
pub fn noted_as_here<T>(task: impl Future<Output = T>) -> impl Future<Output = T> {
    let note = note();
    async move {
        match note {
            Some(note) => noted(note, task).await,
            None => task.await,
        }
    }
}

/// The note of the present task; `None` if its changes are not noted.
pub(crate) fn note() -> Option<Arc<dyn ChangeNote>> {
    NOTE.try_with(Arc::clone).ok()
}

/// The id of the resource that the writes create or replace; `None` if they only delete.
pub(crate) fn made(writes: &[Write]) -> Option<String> {
    writes.iter().rev().find_map(|write| match write {
        Write::PutEndpoint(endpoint) => Some(endpoint.id.to_string()),
        Write::PutTemplate(template) => Some(template.id.to_string()),
        Write::PutKey(key) => Some(key.id.clone()),
        // These belong to another resource.
        Write::PutJsonRow(JsonRowKind::EndpointVersion | JsonRowKind::Owner, ..) => None,
        Write::PutJsonRow(_, id, _) => Some(id.clone()),
        _ => None,
    })
}
