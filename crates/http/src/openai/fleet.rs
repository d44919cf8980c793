//! Requests to all endpoints at one address: the model's name chooses.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use longshore_engine::EndpointHandle;
use longshore_model::{ApiKey, Operation};

use super::asked::Asked;
use super::problem::Problem;
use super::{Answered, models, single};
use crate::errors::Failure;
use crate::rate_limits::Bucket;
use crate::{HttpState, keys};

/// `GET /openai/v1/models`. No worker is asked.
pub(super) async fn models(State(state): State<HttpState>, headers: HeaderMap) -> Answered {
    let key = keys::authorize_somewhere(&state, &headers, Operation::Jobs)?;
    Ok(models::list(&usable(&state, &key)))
}

/// `GET /openai/v1/models/{model}`.
pub(super) async fn model(
    State(state): State<HttpState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Answered {
    let key = keys::authorize_somewhere(&state, &headers, Operation::Jobs)?;
    // What is no text names nothing.
    let name = path.map_or_else(|_| String::new(), |Path(name)| name);
    let found = models::find(&usable(&state, &key), &name);
    Ok(found.map_or_else(
        || Problem::no_such_model(&name).into_response(),
        |endpoint| models::one(&endpoint, &name),
    ))
}

/// `POST /openai/v1/*`.
pub(super) async fn asked(State(state): State<HttpState>, request: Request) -> Response {
    to_model(state, request).await.unwrap_or_else(Failure::into_response)
}

async fn to_model(state: HttpState, request: Request) -> Answered {
    let (parts, body) = request.into_parts();
    let key = keys::authorize_somewhere(&state, &parts.headers, Operation::Jobs)?;
    let mut asked = Asked::read(&state, &parts.uri, body).await?;
    let Some(name) = asked.model.clone() else { return Ok(Problem::no_model().into_response()) };
    let Some(endpoint) = models::find(&usable(&state, &key), &name) else {
        return Ok(Problem::no_such_model(&name).into_response());
    };
    let running = endpoint.running_workers();
    let admitted = state.limiter().admit(key.owner, endpoint.no(), Bucket::Openai, running);
    let admission = match admitted {
        Ok(admission) => admission,
        Err(overrun) => return Ok(overrun.into_response()),
    };
    let record = endpoint.record();
    if let Some(first) = record.models.first().filter(|_| !record.models.contains(&name)) {
        // Called by the endpoint's name: the worker knows its model by another.
        asked.rename_model(first);
    }
    let answered = single::ask(&state, key.submitter(), endpoint, asked).await;
    Ok(admission.close_with_body(answered.unwrap_or_else(Failure::into_response)))
}

/// The endpoints that a key may hand jobs to, oldest first.
fn usable(state: &HttpState, key: &ApiKey) -> Vec<EndpointHandle> {
    let now = keys::now_for(key, state);
    let mut endpoints = state.engine().endpoints();
    endpoints.retain(|endpoint| key.permits(Operation::Jobs, Some(&endpoint.id()), now));
    endpoints
}
