//! A client's request, and the job that it becomes.

use axum::body::Body;
use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use longshore_engine::{Submission, write_json_string};
use longshore_envelope::{EnvelopeError, too_deep_at};
use longshore_model::limits::RUNSYNC_BODY_BYTES_MAX;
use longshore_model::{Submitter, TraceContext};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

use crate::HttpState;
use crate::gate::peer;
use crate::wire::api_error::ApiError;
use crate::wire::body::{self, ReadBody};

/// A request that becomes a job.
#[derive(Debug)]
pub(super) struct OpenAiRequest {
    /// The path after `/openai` with the query, which the worker sends to its model server.
    route: String,
    /// The body as JSON text. Empty for a request without a body.
    input: Bytes,
    /// The name of the model in the body.
    pub(super) model: Option<String>,
    /// Whether the client asks for a stream.
    pub(super) streams: bool,
    /// The client's trace; `None` without one, and if the server sends no traces.
    pub(super) trace: Option<Box<TraceContext>>,
    permit: Option<OwnedSemaphorePermit>,
}

/// The members of a body that the server reads.
#[derive(Deserialize)]
struct RequestMembers<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    stream: Option<&'a RawValue>,
}

impl OpenAiRequest {
    /// A request without a body.
    pub(super) fn without_body(uri: &Uri) -> Self {
        Self {
            route: route(uri),
            input: Bytes::new(),
            model: None,
            streams: false,
            trace: None,
            permit: None,
        }
    }

    /// A request with a body, which may be empty.
    pub(super) async fn read(state: &HttpState, uri: &Uri, body: Body) -> Result<Self, ApiError> {
        let ReadBody { bytes, permit } = body::read(body, RUNSYNC_BODY_BYTES_MAX, state.budget()).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::without_body(uri));
        }
        if let Some(at) = too_deep_at(&bytes) {
            return Err(EnvelopeError::nested_too_deep(at).into());
        }
        let not_json = |_| not_an_object();
        let whole: &RawValue = serde_json::from_slice(&bytes).map_err(not_json)?;
        if !whole.get().starts_with('{') {
            return Err(not_an_object());
        }
        let members: RequestMembers<'_> = serde_json::from_str(whole.get()).map_err(not_json)?;
        let model = members.model.and_then(|model| serde_json::from_str(model.get()).ok());
        let streams = members.stream.is_some_and(|stream| stream.get() == "true");
        let input = bytes.slice_ref(whole.get().as_bytes());
        Ok(Self { route: route(uri), input, model, streams, trace: None, permit: Some(permit) })
    }

    /// Replaces the name of the model. All other members stay the same, byte for byte.
    pub(super) fn rename_model(&mut self, name: &str) {
        let members: Result<RequestMembers<'_>, _> = serde_json::from_slice(&self.input);
        let Some(old) = members.ok().and_then(|members| members.model) else { return };
        let start = old.get().as_ptr() as usize - self.input.as_ptr() as usize;
        let mut renamed = self.input[..start].to_vec();
        write_json_string(name, &mut renamed);
        renamed.extend_from_slice(&self.input[start + old.get().len()..]);
        self.input = renamed.into();
    }

    /// The path without the query. The kind of answer depends on the path.
    pub(super) fn path(&self) -> &str {
        self.route.split('?').next().unwrap_or_default()
    }

    /// The request for a worker that serves HTTP itself: its path and its body, with its share of the body budget until the
    /// body is sent. `None` if the path is no path.
    pub(super) fn into_forwarded(self) -> Option<(PathAndQuery, Bytes, Option<OwnedSemaphorePermit>)> {
        Some((PathAndQuery::try_from(self.route).ok()?, self.input, self.permit))
    }

    /// The job, with its share of the body budget until the job is stored.
    pub(super) fn into_submission(
        self,
        state: &HttpState,
        submitter: Submitter,
    ) -> (Submission, Option<OwnedSemaphorePermit>) {
        let mut members = b"\"input\":{\"openai_route\":".to_vec();
        write_json_string(&self.route, &mut members);
        if !self.input.is_empty() {
            members.extend_from_slice(b",\"openai_input\":");
            members.extend_from_slice(&self.input);
        }
        members.push(b'}');
        let submission = Submission {
            // The client waits for the answer, so the job is kept as briefly as one of `/runsync`.
            id: peer::chosen_job().map_or_else(|| state.engine().mint_job(true), |chosen| chosen.id),
            members: members.into(),
            webhook: false,
            low_priority: false,
            execution_timeout_ms: None,
            ttl_ms: None,
            idempotency: None,
            submitter,
            trace: self.trace,
        };
        (submission, self.permit)
    }
}

fn not_an_object() -> ApiError {
    let text = "the body must be a JSON object; other kinds of bodies cannot be passed on";
    ApiError::bad_request("bad_json", text)
}

fn route(uri: &Uri) -> String {
    let whole = uri.path_and_query().map_or(uri.path(), |whole| whole.as_str());
    whole.split_once("/openai").map_or("", |(_, route)| route).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: &str) -> OpenAiRequest {
        OpenAiRequest {
            input: Bytes::copy_from_slice(body.as_bytes()),
            ..OpenAiRequest::without_body(&"/".parse().unwrap())
        }
    }

    #[test]
    fn a_route_is_what_comes_behind_openai() {
        for (uri, expected) in [
            ("/v2/e/openai/v1/models/org%2Fm", "/v1/models/org%2Fm"),
            ("/v2/openai/openai/v1/x?a=b&c", "/openai/v1/x?a=b&c"),
            ("/openai/v1/chat/completions", "/v1/chat/completions"),
        ] {
            // The caller has removed the name of the endpoint, which may have any form.
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(route(&uri), expected);
        }
    }

    #[test]
    fn a_model_is_renamed_and_nothing_else() {
        let mut one = asked("{\"a\": 1.0, \"model\" : \"old\", \"b\":[1e400]}");
        one.rename_model("org/\"new\"");
        assert_eq!(one.input, r#"{"a": 1.0, "model" : "org/\"new\"", "b":[1e400]}"#);
        let mut none = asked("{\"a\":1}");
        none.rename_model("x");
        assert_eq!(none.input, "{\"a\":1}");
    }
}
