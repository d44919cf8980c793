//! Requests at `/v2/{endpoint}/openai`.

use axum::RequestExt as _;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use longshore_engine::EndpointHandle;
use longshore_history::LimitedOperation;
use longshore_model::{Permission, Submitter};

use super::cancel_guard::CancelGuard;
use super::request::OpenAiRequest;
use super::{Answered, models, streamed, whole};
use crate::HttpState;
use crate::gate::auth;
use crate::gate::peer::{self, ChosenJob};
use crate::gate::repeated_submit;
use crate::wire::api_error::ApiError;
use crate::wire::submit_trace;

/// `GET /v2/{endpoint}/openai/*`.
pub(super) async fn asked_by_get(state: State<HttpState>, request: Request) -> Response {
    to_endpoint(state, request, false).await.unwrap_or_else(ApiError::into_response)
}

/// `POST /v2/{endpoint}/openai/*`.
pub(super) async fn asked_by_post(state: State<HttpState>, request: Request) -> Response {
    to_endpoint(state, request, true).await.unwrap_or_else(ApiError::into_response)
}

async fn to_endpoint(State(state): State<HttpState>, mut request: Request, has_body: bool) -> Answered {
    let path: Option<Path<(String, String)>> = request.extract_parts().await.ok();
    // A path that is not UTF-8 is read as the empty text, which no endpoint has.
    let (endpoint, route) = path.map_or_else(Default::default, |Path(path)| path);
    let found = auth::authorize_endpoint(&state, request.headers(), Permission::WriteJobs, &endpoint);
    let (key, endpoint) = found?;
    if endpoint.balancer().is_some() {
        return Err(ApiError::is_load_balancing(&endpoint.id()));
    }
    let admitted = key.admit(&state, &endpoint, LimitedOperation::Openai);
    let permit = match admitted {
        Ok(permit) => permit,
        Err(exceeded) => return Ok(exceeded.into_response()),
    };
    if let (false, Some(answer)) = (has_body, models::of_endpoint(&endpoint, &route)) {
        return Ok(permit.close(answer));
    }
    let (parts, body) = request.into_parts();
    // The slug of the endpoint may itself be `openai`.
    let uri = models::after_endpoint(&parts.uri);
    let mut asked = if has_body {
        OpenAiRequest::read(&state, &uri, body).await?
    } else {
        OpenAiRequest::without_body(&uri)
    };
    asked.trace = submit_trace::of_client(state.engine(), &parts.headers);
    let answered = ask(&state, key.submitter(), endpoint, asked).await;
    Ok(permit.close_with_body(answered.unwrap_or_else(ApiError::into_response)))
}

/// Submits a job to the endpoint and waits for its answer without a time limit.
pub(super) async fn ask(
    state: &HttpState,
    by: Submitter,
    endpoint: EndpointHandle,
    asked: OpenAiRequest,
) -> Answered {
    let (streams, ends_with_done) = (asked.streams, streamed::ends_with_done(asked.path()));
    let (submission, body_permit) = asked.into_submission(state, by);
    if let Some(repeated) = peer::chosen_job().filter(ChosenJob::is_repeated) {
        repeated_submit::check(&endpoint, repeated, None).await?;
    }
    let guard = CancelGuard::new(state.engine(), endpoint.jobs().clone(), submission.id);
    endpoint.jobs().submit(submission).await?;
    drop(body_permit);
    if streams { streamed::answer(guard, ends_with_done).await } else { whole::answer(guard).await }
}
