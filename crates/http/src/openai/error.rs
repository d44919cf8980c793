//! Errors in the form of the OpenAI API, from this server and from the errors that workers report.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, HeaderName};
use http::{HeaderValue, StatusCode};
use longshore_engine::JobSnapshot;
use longshore_model::JobState;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::python_literal;
use crate::wire::api_error::{ApiError, ErrorText};
use crate::wire::json_body::JsonBody;

/// The header by which clients decide whether to retry.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An error response in the form of the OpenAI API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenAiError {
    status: StatusCode,
    message: String,
    kind: String,
    param: Value,
    code: Value,
    /// Whether the worker ran the prompt, so that a retry would fail again.
    no_retry: bool,
}

impl OpenAiError {
    fn new(status: StatusCode, message: impl Into<String>, code: &str) -> Self {
        let (message, kind) = (message.into(), kind_of(status).to_owned());
        Self { status, message, kind, param: Value::Null, code: json!(code), no_retry: false }
    }

    /// No endpoint has a model of this name, or the key may not use the endpoint.
    pub(super) fn no_such_model(name: &str) -> Self {
        let message = format!("the model `{name}` does not exist, or the key may not use it");
        Self { param: json!("model"), ..Self::new(StatusCode::NOT_FOUND, message, "model_not_found") }
    }

    /// The request lacks the name of the model, which chooses the endpoint.
    pub(super) fn no_model() -> Self {
        let message = "`model` is missing; it chooses the endpoint. Or use an endpoint's own address";
        Self { param: json!("model"), ..Self::new(StatusCode::BAD_REQUEST, message, "missing_model") }
    }

    /// The worker was lost after a part of its answer was sent.
    pub(super) fn worker_lost() -> Self {
        let message = "the worker was lost while it answered; retry";
        Self::new(StatusCode::BAD_GATEWAY, message, "worker_lost")
    }

    /// The error of a job that ended without a result.
    pub(super) fn of_job(job: &JobSnapshot) -> Self {
        let error = job.error.as_deref();
        let error = match job.row.state {
            JobState::TimedOut => {
                let message = error.unwrap_or("the job ran longer than its execution timeout");
                Self::new(StatusCode::GATEWAY_TIMEOUT, message, "job_timed_out")
            }
            JobState::Cancelled => Self::new(StatusCode::CONFLICT, "the job was cancelled", "job_cancelled"),
            _ => return Self::in_text(error.unwrap_or("the job failed")),
        };
        Self { no_retry: true, ..error }
    }

    /// The error in a result: `{"error": …}`, or an object with `"object": "error"`. `None` for any other result.
    pub(super) fn in_result(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct WorkerError<'a> {
            #[serde(borrow)]
            error: Option<&'a RawValue>,
            #[serde(borrow)]
            object: Option<&'a RawValue>,
        }
        // serde also reads a list as a struct.
        let json = Some(json).filter(|json| json.trim_ascii_start().starts_with(b"{"))?;
        let members: WorkerError<'_> = serde_json::from_slice(json).ok()?;
        let nothing = ["null", "false", "\"\"", "{}", "[]", "0"];
        let has_error = members.error.is_some_and(|error| !nothing.contains(&error.get()));
        let is_error = members.object.is_some_and(|object| object.get() == "\"error\"");
        (has_error || is_error).then(|| Self::in_value(&serde_json::from_slice(json).unwrap_or_default()))
    }

    /// The error in a worker's text: JSON, a Python dictionary or plain words.
    fn in_text(text: &str) -> Self {
        let value = serde_json::from_str(text).ok().or_else(|| python_literal::parse(text));
        match value {
            Some(value @ Value::Object(_)) => Self::in_value(&value),
            _ => Self::in_words(text),
        }
    }

    fn in_words(text: &str) -> Self {
        if let Some(error) = Self::of_model_server(text) {
            return error;
        }
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, text, "worker_error");
        Self { kind: "worker_error".to_owned(), no_retry: true, ..error }
    }

    fn in_value(value: &Value) -> Self {
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let named = status_of(error).or_else(|| status_of(value));
        if let Value::String(text) = error {
            let error = Self::in_words(text);
            let Some(status) = named else { return error };
            return Self { status, kind: kind_of(status).to_owned(), no_retry: false, ..error };
        }
        // The SDK reports exceptions with `error_message` and a traceback, which is not for clients.
        let message = ["message", "error_message", "detail"].iter().find_map(|name| error.get(name));
        let message = match message {
            Some(Value::String(message)) => message.clone(),
            Some(other) => other.to_string(),
            None => error.to_string(),
        };
        if let Some(error) = Self::of_model_server(&message) {
            return error;
        }
        let kind = error.get("type").and_then(Value::as_str);
        let code = error.get("code").cloned().unwrap_or_default();
        let status = named.or_else(|| {
            kind.is_some_and(|kind| {
                kind.to_ascii_lowercase().replace('_', "").contains("badrequest")
                    || kind == "invalid_request_error"
            })
            .then_some(StatusCode::BAD_REQUEST)
        });
        let param = error.get("param").cloned().unwrap_or_default();
        let plain = Self::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message, "");
        let kind = kind.map_or_else(|| plain.kind.clone(), str::to_owned);
        Self { kind, param, code, no_retry: status.is_none(), ..plain }
    }

    /// The error of a model server in a worker's text: `vLLM returned HTTP 400: {"error": {…}}`.
    fn of_model_server(message: &str) -> Option<Self> {
        let (_, rest) = message.split_once("returned HTTP ")?;
        let (digits, rest) = rest.split_at_checked(3)?;
        let status = digits.parse().ok().and_then(|status| StatusCode::from_u16(status).ok())?;
        let status = Some(status).filter(|status| status.is_client_error() || status.is_server_error())?;
        let text = rest.trim_start_matches([':', ' ']);
        let value = serde_json::Deserializer::from_str(text).into_iter().next();
        let error = match value {
            Some(Ok(value @ Value::Object(_))) => Self::in_value(&value),
            _ => Self::new(status, if text.is_empty() { message } else { text }, "worker_error"),
        };
        Some(Self { status, no_retry: false, ..error })
    }

    /// The error as JSON, for the body of a response or the data of an event.
    pub(super) fn to_json(&self) -> String {
        let error =
            json!({ "message": self.message, "type": self.kind, "param": self.param, "code": self.code });
        json!({ "error": error }).to_string()
    }
}

fn kind_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "server_error",
    }
}

/// The HTTP status that an error names. `None` if it names none from 400 to 599.
fn status_of(error: &Value) -> Option<StatusCode> {
    ["code", "status", "status_code"].iter().find_map(|name| status_in(error.get(name)?))
}

fn status_in(code: &Value) -> Option<StatusCode> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let status = StatusCode::from_u16(u16::try_from(number).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

impl From<ApiError> for OpenAiError {
    fn from(failure: ApiError) -> Self {
        let ErrorText { code, text } = ErrorText::from(&failure);
        Self::new(failure.status(), text, code)
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let mut body = JsonBody::new();
        body.text(&self.to_json());
        let mut response = body.into_response();
        *response.status_mut() = self.status;
        if self.no_retry {
            response.headers_mut().insert(X_SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// Converts an error response of this server to the form of the OpenAI API. The headers stay.
pub(crate) fn reshape(mut response: Response) -> Response {
    let Some(ErrorText { code, text }) = response.extensions_mut().remove() else { return response };
    let error = OpenAiError::new(response.status(), text, code);
    response.headers_mut().remove(CONTENT_LENGTH);
    *response.body_mut() = Body::from(error.to_json());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields_of(text: &str) -> (u16, String, String, bool) {
        let error = OpenAiError::in_text(text);
        (error.status.as_u16(), error.kind, error.message, error.no_retry)
    }

    #[test]
    fn any_report_of_a_worker_becomes_an_error_with_a_status() {
        let server = r#"{'message': 'vLLM returned HTTP 400: {"error": {"message": "it\'s too long", "type": "BadRequestError", "param": "messages", "code": 400}}', 'type': 'worker_error', 'code': None}"#;
        let flat = r#"{'message': 'vLLM returned HTTP 404: {"object": "error", "message": "no model", "type": "NotFoundError", "code": 404}', 'type': 'worker_error', 'code': None}"#;
        let exception =
            r#"{"error_type": "<class 'ValueError'>", "error_message": "boom", "error_traceback": "secret"}"#;
        for (text, status, kind, message, no_retry) in [
            (server, 400, "BadRequestError", "it's too long", false),
            (flat, 404, "NotFoundError", "no model", false),
            (
                "{'message': 'vLLM returned HTTP 503: busy', 'type': 'worker_error', 'code': None}",
                503,
                "server_error",
                "busy",
                false,
            ),
            (
                "{'message': 'm', 'type': 'invalid_request_error', 'code': 400}",
                400,
                "invalid_request_error",
                "m",
                false,
            ),
            ("{'message': 'm', 'code': '429'}", 429, "rate_limit_error", "m", false),
            ("{'message': 'm', 'type': 'worker_error', 'code': None}", 500, "worker_error", "m", true),
            (
                r#"{"error": {"message": "m", "type": "invalid_request_error"}}"#,
                400,
                "invalid_request_error",
                "m",
                false,
            ),
            (exception, 500, "server_error", "boom", true),
            ("handler: it broke", 500, "worker_error", "handler: it broke", true),
            ("[1]", 500, "worker_error", "[1]", true),
        ] {
            assert_eq!(fields_of(text), (status, kind.to_owned(), message.to_owned(), no_retry), "{text}");
        }
    }

    #[test]
    fn results_that_are_errors_are_told_from_others() {
        let status = |json: &str| OpenAiError::in_result(json.as_bytes()).map(|error| error.status.as_u16());
        assert_eq!(
            status(r#"{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}"#),
            Some(400)
        );
        assert_eq!(status(r#"{"error":{"message":"m","code":404}}"#), Some(404));
        assert_eq!(status(r#"{"error":"broken"}"#), Some(500));
        assert_eq!(status(r#"{"error":"broken","status":503}"#), Some(503));
        assert_eq!(status(r#"{"error":{"message":"m","code":"rate_limited","status":429}}"#), Some(429));
        assert_eq!(status(r#"{"error":{"message":"m","code":"x"},"status_code":"404"}"#), Some(404));
        assert_eq!(status(r#"{"error":{"message":"m","code":200}}"#), Some(500));
        for fine in [
            r#"{"object":"chat.completion"}"#,
            r#"{"error":null,"status":"completed"}"#,
            "[1, 2]",
            "\"error\"",
            "{}",
            "[1, 2]",
        ] {
            assert_eq!(status(fine), None, "{fine}");
        }
    }
}
