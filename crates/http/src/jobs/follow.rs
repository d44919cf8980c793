//! `stream` as server-sent events: a job from its first chunk to its end in one response.

use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
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
use crate::wire::sse::{self, COMMENT, KEEP_ALIVE, Next, last_event_id, on_one_line};

/// Longest wait for the first event before the response begins.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The response: events for chunks with their offset as `id`, `event: status` for each change of the job's state, and
/// finally `event: done` with the job, without an output of more than `output_bytes_max`. A reader that was disconnected
/// sends `Last-Event-ID` to go on. Damaged data is refused like in any other response if it comes first, and otherwise ends
/// the response with `event: error`.
pub(super) async fn events(
    call: Call,
    offset: Option<u64>,
    output_bytes_max: u64,
) -> Result<Response, ApiError> {
    let job = call.job()?;
    let offset = match last_event_id(&call.headers)? {
        Some(last) if planted(Bug::ResumeRepeatsOne) => last,
        Some(last) if planted(Bug::ResumeSkipsOne) => last.saturating_add(2),
        Some(last) => last.saturating_add(1),
        None => offset.unwrap_or(0),
    };
    let mut follower = call.endpoint.jobs().follow(job, offset).await?;
    // The first event is the state, a chunk or the end, none of which takes long.
    let first = timeout(FIRST_EVENT_TIMEOUT, follower.next()).await.ok().transpose()?;
    let access = call.ongoing_access(Permission::ReadJobs);
    let following =
        Following { follower, output_bytes_max, access, state: call.state, first, has_ended: false };
    Ok(sse::answer(following, Following::next))
}

/// A response in progress.
struct Following {
    follower: Follower,
    /// The largest output that the reader wants in records, in bytes of JSON text.
    output_bytes_max: u64,
    access: OngoingAccess,
    state: HttpState,
    /// The event that was received before the response began; `None` if there was none, or once it is written.
    first: Option<FollowEvent>,
    /// The last event is written.
    has_ended: bool,
}

impl Following {
    /// The bytes of the next events. The response ends without `done` if the key lost its permission or the events cannot be
    /// read or sent: the reader connects again with the last id.
    fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            if self.has_ended {
                return None;
            }
            let mut body = JsonBody::new();
            let event = match self.first.take() {
                Some(first) => Ok(Ok(first)),
                None => timeout(KEEP_ALIVE, self.follower.next()).await,
            };
            if !self.access.holds(&self.state) {
                return None;
            }
            match event {
                Err(_) => return Some((vec![Bytes::from_static(COMMENT)], self)),
                Ok(Err(error @ EndpointError::Damaged(_))) => {
                    self.has_ended = true;
                    body.event("error").text("{");
                    ApiError::from(error).write_members(&mut body);
                    body.text("}").end_event();
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "following a job failed");
                    return None;
                }
                Ok(Ok(FollowEvent::Chunks(chunks))) => self.write_chunks(chunks, &mut body)?,
                Ok(Ok(FollowEvent::Status(job))) => self.write_record("status", *job, &mut body),
                Ok(Ok(FollowEvent::Ended(job))) => {
                    self.has_ended = true;
                    self.write_record("done", *job, &mut body);
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

    fn write_record(&self, event: &str, mut job: JobSnapshot, body: &mut JsonBody) {
        let output = job.output.take();
        let unsent = output.as_ref().map(Bytes::len).filter(|bytes| *bytes as u64 > self.output_bytes_max);
        if unsent.is_none() {
            // A text that is rewritten to one line is a copy.
            job.output = output.map(|output| job.room.around(on_one_line(output)));
        }
        body.event(event).text("{");
        job_response::write_members(job, body);
        if let Some(bytes) = unsent {
            body.text(",\"outputBytes\":").number(bytes as u64);
        }
        body.text("}").end_event();
    }

    /// The payload on one line, charged to the budget of response bytes; `None` if the budget is used up.
    fn sendable(&self, payload: Bytes) -> Option<Bytes> {
        self.state.engine().answers().charge(on_one_line(payload)).ok()
    }
}
