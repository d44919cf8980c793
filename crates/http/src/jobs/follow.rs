//! `stream` as server-sent events: a job from its first chunk to its end in one answer.

use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use longshore_engine::{EndpointError, FollowEvent, Follower, JobSnapshot, StreamChunk};
use longshore_model::Permission;
use longshore_planted::{Bug, planted};
use tokio::time::timeout;

use super::chunk;
use super::job_response;
use crate::HttpState;
use crate::gate::auth::OngoingAccess;
use crate::gate::call::Call;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::sse::{self, COMMENT, KEEP_ALIVE, Next, on_one_line};

/// How long the answer waits for what comes first.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The answer: events for chunks with their offset as `id`, `event: status` whenever the job stands otherwise, and in
/// the end `event: done` with the record. Who was cut off says with `Last-Event-ID` what it has. What is damaged is refused as
/// by any other answer if it comes first, and else is the last word, as `event: error`.
pub(super) async fn events(call: Call, offset: Option<u64>) -> Result<Response, ApiError> {
    let job = call.job()?;
    let offset = match last_event_id(&call.headers)? {
        Some(last) if planted(Bug::ResumeRepeatsOne) => last,
        Some(last) if planted(Bug::ResumeSkipsOne) => last.saturating_add(2),
        Some(last) => last.saturating_add(1),
        None => offset.unwrap_or(0),
    };
    let mut follower = call.endpoint.follow(job, offset).await?;
    // How the job stands, a chunk or the end: nothing that is long in coming.
    let first = timeout(FIRST_PATIENCE, follower.next()).await.ok().transpose()?;
    let standing = call.standing(Permission::ReadJobs);
    let following = Following { follower, standing, state: call.state, first, over: false };
    Ok(sse::answer(following, Following::next))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    // Browsers leave it out where there is none; others send it empty.
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let digits = value.as_bytes().iter().all(u8::is_ascii_digit);
    let number = value.to_str().ok().filter(|_| digits).and_then(|text| text.parse().ok());
    let refusal = || ApiError::bad_request("bad_parameter", "`Last-Event-ID` must be the `id` of an event");
    number.map(Some).ok_or_else(refusal)
}

/// An answer that goes on.
struct Following {
    follower: Follower,
    standing: OngoingAccess,
    state: HttpState,
    /// What came before the answer began.
    first: Option<FollowEvent>,
    over: bool,
}

impl Following {
    /// The next events. The answer just ends where the server cannot go on: the reader comes back with the last id.
    fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            if self.over {
                return None;
            }
            let mut body = JsonBody::new();
            let happening = match self.first.take() {
                Some(first) => Ok(Ok(first)),
                None => timeout(KEEP_ALIVE, self.follower.next()).await,
            };
            if !self.standing.holds(&self.state) {
                return None;
            }
            match happening {
                Err(_) => return Some((vec![Bytes::from_static(COMMENT)], self)),
                Ok(Err(error @ EndpointError::Damaged(_))) => {
                    self.over = true;
                    body.event("error").text("{");
                    ApiError::from(error).write_members(&mut body);
                    body.text("}").end_event();
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a followed job cannot be followed any longer");
                    return None;
                }
                Ok(Ok(FollowEvent::Chunks(chunks))) => self.write_chunks(chunks, &mut body)?,
                Ok(Ok(FollowEvent::Status(job))) => write_record("status", *job, &mut body),
                Ok(Ok(FollowEvent::Ended(job))) => {
                    self.over = true;
                    write_record("done", *job, &mut body);
                }
            }
            Some((body.into_parts(), self))
        })
    }

    fn write_chunks(&self, chunks: Vec<StreamChunk>, body: &mut JsonBody) -> Option<()> {
        for StreamChunk { offset, chunk } in chunks {
            let chunk = chunk::try_map(chunk, |json| self.sendable(json).ok_or(())).ok()?;
            body.text("id: ").number(offset).text("\ndata: ");
            chunk::write(&chunk, body);
            body.end_event();
        }
        Some(())
    }

    /// A payload on its way to a reader; none while there are as many of those as there may be.
    fn sendable(&self, payload: Bytes) -> Option<Bytes> {
        self.state.engine().answers().charge(on_one_line(payload)).ok()
    }
}

fn write_record(event: &str, mut job: JobSnapshot, body: &mut JsonBody) {
    // What is written on one line is a copy.
    job.output = job.output.take().map(|output| job.room.around(on_one_line(output)));
    body.event(event).text("{");
    job_response::write_members(job, body);
    body.text("}").end_event();
}
