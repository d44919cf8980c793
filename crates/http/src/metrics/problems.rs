//! What needs a person, by endpoint.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use longshore_engine::{EndpointHandle, problem};
use longshore_model::EndpointId;
use tokio::time::{Instant, timeout_at};

use crate::HttpState;

/// The longest wait for all endpoints together. An endpoint that takes longer has no sample.
const WAIT_MAX: Duration = Duration::from_millis(500);
/// Most endpoints that are asked concurrently.
const CONCURRENT_MAX: usize = 256;

/// The code and the severity of each endpoint that needs a person.
pub(super) type Problems = HashMap<EndpointId, (&'static str, &'static str)>;

/// Explains every endpoint, and returns those that need a person.
pub(super) async fn problems(state: &HttpState) -> Problems {
    let until = Instant::now() + WAIT_MAX;
    let explained = |handle: &EndpointHandle| {
        let handle = handle.clone();
        async move {
            let explanation = timeout_at(until, state.engine().explain(&handle, None, &|_| false)).await;
            let explanation = explanation.ok()?.ok()?;
            let found = problem(&explanation).map(|(severity, cause)| (severity, cause.code.as_str()));
            let burning = state.burns().burning(state.history(), &handle, state.engine().now());
            // What is looked up too late is known to the next call.
            let burning = timeout_at(until, burning).await.ok().flatten();
            let burning = burning.map(|burning| (burning.severity, burning.code));
            let (severity, code) = found.into_iter().chain(burning).min_by_key(|(severity, _)| *severity)?;
            Some((handle.id(), (code, severity.as_str())))
        }
    };
    let mut found = Problems::new();
    for handles in state.engine().endpoints().chunks(CONCURRENT_MAX) {
        found.extend(join_all(handles.iter().map(explained)).await.into_iter().flatten());
    }
    found
}
