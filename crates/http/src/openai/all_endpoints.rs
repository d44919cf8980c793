//! Requests at `/openai/v1`, where the name of the model chooses the endpoint.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use longshore_engine::EndpointHandle;
use longshore_history::LimitedOperation;
use longshore_model::{ApiKey, Permission};

use super::error::OpenAiError;
use super::request::OpenAiRequest;
use super::{Answered, models, one_endpoint};
use crate::HttpState;
use crate::gate::auth;
use crate::lb;
use crate::wire::api_error::ApiError;
use crate::wire::submit_trace;

/// `GET /openai/v1/models`. Creates no job.
pub(super) async fn models(State(state): State<HttpState>, headers: HeaderMap) -> Answered {
    let key = auth::authorize_somewhere(&state, &headers, Permission::WriteJobs)?;
    Ok(models::list(&usable(&state, &key)))
}

/// `GET /openai/v1/models/{model}`.
pub(super) async fn model(
    State(state): State<HttpState>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Answered {
    let key = auth::authorize_somewhere(&state, &headers, Permission::WriteJobs)?;
    // A name that is not UTF-8 is read as the empty text, which no model has.
    let name = path.map_or_else(|_| String::new(), |Path(name)| name);
    let found = models::find(&usable(&state, &key), &name);
    Ok(found.map_or_else(
        || OpenAiError::no_such_model(&name).into_response(),
        |endpoint| models::one(&endpoint, &name),
    ))
}

/// `POST /openai/v1/*`.
pub(super) async fn asked(State(state): State<HttpState>, request: Request) -> Response {
    to_model(state, request).await.unwrap_or_else(ApiError::into_response)
}

async fn to_model(state: HttpState, request: Request) -> Answered {
    let (mut parts, body) = request.into_parts();
    let key = auth::authorize_somewhere(&state, &parts.headers, Permission::WriteJobs)?;
    let mut asked = OpenAiRequest::read(&state, &parts.uri, body).await?;
    let Some(name) = asked.model.clone() else { return Ok(OpenAiError::no_model().into_response()) };
    let Some(endpoint) = models::find(&usable(&state, &key), &name) else {
        return Ok(OpenAiError::no_such_model(&name).into_response());
    };
    let admitted = key.admit(&state, &endpoint, LimitedOperation::Openai);
    let permit = match admitted {
        Ok(permit) => permit,
        Err(exceeded) => return Ok(exceeded.into_response()),
    };
    let record = endpoint.record();
    if let Some(first) = record.models.first().filter(|_| !record.models.contains(&name)) {
        // The request named the endpoint, but the worker expects the name of its model.
        asked.rename_model(first);
    }
    if endpoint.balancer().is_some() {
        let (path, body, held) = asked.into_forwarded().ok_or_else(ApiError::no_such_route)?;
        parts.headers.insert(CONTENT_LENGTH, body.len().into());
        let answered =
            lb::pass(&state, endpoint, permit, path, Request::from_parts(parts, body.into())).await;
        drop(held);
        return Ok(answered);
    }
    asked.trace = submit_trace::of_client(state.engine(), &parts.headers);
    let answered = one_endpoint::ask(&state, key.submitter(), endpoint, asked).await;
    Ok(permit.close_with_body(answered.unwrap_or_else(ApiError::into_response)))
}

/// The endpoints that a key may submit jobs to, oldest first.
fn usable(state: &HttpState, key: &ApiKey) -> Vec<EndpointHandle> {
    let now = auth::now_for(key, state);
    let mut endpoints = state.engine().endpoints();
    endpoints.retain(|endpoint| key.permits(Permission::WriteJobs, Some(&endpoint.id()), now));
    endpoints
}
