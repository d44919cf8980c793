//! `explain`: why a job waits, or why the jobs of an endpoint wait.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{CauseDetail, Explanation, WaitAction, WaitCause};
use longshore_model::Permission::{ReadCatalog, WriteCatalog};
use longshore_model::{EndpointId, JobId};
use serde_json::{Map, Value, json};

use super::openapi::job_id;
use crate::gate::call::Call;
use crate::openapi::schema::{array_of, count, object, reference, text, time, with_example};
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::rfc3339;

/// The description of both operations.
pub(super) const ABOUT: &str = "`cause` is the most important reason, `also` has the others that hold. The titles and texts \
    are for people; programs read `code` and `details`. `estimate` is null while a cause is blocking, and without enough \
    measurements. Log lines, names of other endpoints and actions are shown only to keys that may read or change them.";

/// `GET /explain/{job}`.
pub(super) async fn of_job(call: Call) -> Result<Response, ApiError> {
    let job = call.job()?;
    explain(call, Some(job)).await
}

/// `GET /explain`.
pub(super) async fn of_endpoint(call: Call) -> Result<Response, ApiError> {
    explain(call, None).await
}

async fn explain(call: Call, job: Option<JobId>) -> Result<Response, ApiError> {
    let (id, permits) = (call.endpoint.id(), call.permits());
    let (state, endpoint) = call.into_wait();
    let may_name = |other: &EndpointId| permits(ReadCatalog, other);
    let explanation = state.engine().explain(&endpoint, job, &may_name).await?;
    let reader = Reader { reads: permits(ReadCatalog, &id), changes: permits(WriteCatalog, &id) };
    Ok(axum::Json(view(id, job, &explanation, reader)).into_response())
}

/// What the key of the request may see and do at the endpoint.
#[derive(Clone, Copy)]
struct Reader {
    /// Whether the key may read settings and logs.
    reads: bool,
    /// Whether the key may change settings.
    changes: bool,
}

impl Reader {
    fn may(self, action: WaitAction) -> bool {
        match action {
            WaitAction::OpenLog => self.reads,
            WaitAction::Resume
            | WaitAction::ChangeGpus
            | WaitAction::TryNow
            | WaitAction::ShowCommand
            | WaitAction::RaiseWorkersMax => self.changes,
        }
    }
}

fn view(endpoint: EndpointId, job: Option<JobId>, explanation: &Explanation, reader: Reader) -> Value {
    let Explanation { state, waiting_ms, position, queued, estimate, cause, also } = explanation;
    json!({
        "endpoint": endpoint,
        "job": job,
        "state": state.map(longshore_model::JobState::as_str),
        "waitingMs": waiting_ms,
        "position": position,
        "ahead": position.map(|position| position.saturating_sub(1)),
        "queued": queued,
        "estimate": estimate.map(|time| json!({ "minMs": time.min_ms, "maxMs": time.max_ms })),
        "cause": cause_view(cause, reader),
        "also": also.iter().map(|cause| cause_view(cause, reader)).collect::<Vec<_>>(),
    })
}

fn cause_view(cause: &WaitCause, reader: Reader) -> Value {
    let detail = |value: &CauseDetail| match value {
        CauseDetail::Number(number) => json!(number),
        CauseDetail::Text(text) => json!(text),
        CauseDetail::Time(at) => json!(rfc3339(*at)),
        CauseDetail::Absent => Value::Null,
    };
    let details: Map<_, _> =
        cause.details.iter().map(|(name, value)| ((*name).to_owned(), detail(value))).collect();
    let actions = cause.actions.iter().filter(|action| reader.may(**action));
    let log_tail: &[String] = if reader.reads { &cause.log_tail } else { &[] };
    json!({
        "code": cause.code.as_str(),
        "blocking": cause.is_blocking(),
        "since": cause.since.map(rfc3339),
        "title": cause.title,
        "text": cause.text,
        "details": details,
        "logTail": log_tail,
        "actions": actions.map(|it| json!({ "do": it.as_str(), "title": it.title() })).collect::<Vec<_>>(),
    })
}

/// The schemas of both operations.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let nullable = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let action = object(&[("do", text()), ("title", text())], &["do", "title"]);
    let cause = [
        ("code", text()),
        (
            "blocking",
            json!({ "type": "boolean", "description": "no job starts before the cause is removed" }),
        ),
        ("since", nullable(time())),
        ("title", text()),
        ("text", text()),
        ("details", json!({ "type": "object", "description": "the numbers and names of the text" })),
        ("logTail", array_of(&text())),
        ("actions", array_of(&action)),
    ];
    let range = object(&[("minMs", count()), ("maxMs", count())], &["minMs", "maxMs"]);
    let explanation = [
        ("endpoint", text()),
        ("job", nullable(job_id())),
        ("state", nullable(text())),
        ("waitingMs", nullable(count())),
        ("position", nullable(count())),
        ("ahead", nullable(count())),
        ("queued", nullable(count())),
        ("estimate", nullable(range)),
        ("cause", reference("WaitCause")),
        ("also", array_of(&reference("WaitCause"))),
    ];
    let names = |members: &[(&'static str, Value)]| members.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let example = json!({
        "code": "paused", "blocking": true, "since": null, "title": "The endpoint is paused",
        "text": "`workersMax` is 0.", "details": { "workersMax": 0 }, "logTail": [],
        "actions": [{ "do": "resume", "title": "Resume" }],
    });
    vec![
        ("WaitCause", with_example(object(&cause, &names(&cause)), example)),
        ("Explanation", object(&explanation, &names(&explanation))),
    ]
}
