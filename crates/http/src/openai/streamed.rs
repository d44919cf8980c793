//! Answers as event streams, in the pieces that the worker yields.

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::HeaderValue;
use longshore_engine::{EndpointError, FollowEvent, Follower, JobSnapshot, StreamChunk};
use longshore_model::{Attempt, JobState};
use tokio::time::{Instant, timeout, timeout_at};

use super::cancel_guard::CancelGuard;
use super::error::OpenAiError;
use super::parts::Parts;
use super::sse_framer::SseFramer;
use super::{Answered, whole};
use crate::gate::peer;
use crate::wire::frames::{FRAMES, Framing, Kind};
use crate::wire::sse::{self, COMMENT, KEEP_ALIVE, Next};

/// Whether streams of this path end with `[DONE]`. Other streams have last events of their own.
pub(super) fn ends_with_done(path: &str) -> bool {
    matches!(path, "/v1/chat/completions" | "/v1/completions")
}

/// A stream that has begun or is about to begin.
struct Streaming {
    follower: Follower,
    framer: SseFramer,
    parts: Parts,
    ends_with_done: bool,
    /// The attempt whose chunks were sent.
    sent: Option<Attempt>,
    attempt: Attempt,
    /// The first text of the stream, read before the status was chosen.
    first: Vec<u8>,
    has_ended: bool,
    /// How the text is written for another node; `None` for a client.
    framing: Option<Framing>,
    /// The last field, so that the follower is dropped before the job is cancelled.
    guard: CancelGuard,
}

/// The consequence of one event of the job.
enum Step {
    /// The event adds no text to the stream.
    Nothing,
    /// The text is sent.
    Send(Vec<u8>),
    /// The text is sent and the stream ends.
    End(Vec<u8>),
    /// The error is sent and the stream ends.
    Fail(OpenAiError),
}

/// Waits for the first chunk, then streams it and all later ones. A job that fails before has an error response. After
/// `KEEP_ALIVE` without a chunk the stream begins with a comment; later errors are events of the stream.
pub(super) async fn answer(guard: CancelGuard, ends_with_done: bool) -> Answered {
    let follower = guard.jobs.follow(guard.job, 0).await?;
    let mut streaming = Streaming {
        follower,
        framer: SseFramer::default(),
        parts: Parts::default(),
        ends_with_done,
        sent: None,
        attempt: Attempt(0),
        first: Vec::new(),
        has_ended: false,
        framing: peer::frames().map(Framing::new),
        guard,
    };
    if streaming.framing.as_ref().is_some_and(Framing::goes_on) {
        // The status was sent by an earlier owner.
        return Ok(streaming.into_response());
    }
    let deadline = Instant::now() + KEEP_ALIVE;
    loop {
        let Ok(event) = timeout_at(deadline, streaming.follower.next()).await else {
            streaming.first = COMMENT.to_vec();
            break;
        };
        match streaming.step(event?).await? {
            Step::Nothing => {}
            Step::Send(first) => {
                streaming.first = first;
                break;
            }
            Step::End(last) => {
                (streaming.first, streaming.has_ended) = (last, true);
                break;
            }
            Step::Fail(error) => {
                streaming.guard.disarm();
                return Ok(error.into_response());
            }
        }
    }
    Ok(streaming.into_response())
}

impl Streaming {
    fn into_response(self) -> Response {
        let is_framed = self.framing.is_some();
        let mut response = sse::answer(self, Self::next);
        if is_framed {
            response.headers_mut().insert(FRAMES, HeaderValue::from_static("1"));
        }
        response
    }

    /// The text as the reader gets it: in a frame for another node.
    fn framed(&mut self, piece: Vec<u8>) -> Vec<u8> {
        let Some(framing) = &mut self.framing else { return piece };
        let kind = if piece == COMMENT { Kind::Comment } else { Kind::Text };
        framing.frame(kind, self.attempt, piece)
    }

    fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            if self.framer.has_last_event {
                self.guard.disarm();
            }
            if !self.first.is_empty() {
                let first = std::mem::take(&mut self.first);
                let first = self.framed(first);
                return Some((vec![Bytes::from(first)], self));
            }
            if self.has_ended {
                self.framing.take()?;
                let end = Framing::end(self.attempt);
                return Some((vec![Bytes::from(end)], self));
            }
            let piece = match timeout(KEEP_ALIVE, self.follower.next()).await {
                Err(_) if self.framer.is_at_line_start() => COMMENT.to_vec(),
                // A comment would split the current line.
                Err(_) => Vec::new(),
                // This server stops or cannot read: another node goes on, or this one is asked again.
                Ok(Err(error)) if self.framing.is_some() && !matches!(error, EndpointError::Damaged(_)) => {
                    self.guard.disarm();
                    return None;
                }
                Ok(event) => self.written(event).await,
            };
            // Clients disconnect after the last event, which must not cancel the job.
            if self.framer.has_last_event {
                self.guard.disarm();
            }
            let piece = if piece.is_empty() { piece } else { self.framed(piece) };
            if piece.is_empty() {
                return Some((Vec::new(), self));
            }
            let permit = self.guard.jobs.hold(piece.len()).await.ok()?;
            Some((vec![permit.around(Bytes::from(piece))], self))
        })
    }

    /// The text to send for one event of the job. The status is sent already, so errors become events of the stream.
    async fn written(&mut self, event: Result<FollowEvent, EndpointError>) -> Vec<u8> {
        let step = match event {
            Ok(event) => self.step(event).await,
            Err(error) => Err(error.into()),
        };
        match step {
            Ok(Step::Nothing) => Vec::new(),
            Ok(Step::Send(text)) => text,
            Ok(Step::End(text)) => {
                self.has_ended = true;
                text
            }
            Ok(Step::Fail(error)) => self.error_event(&error),
            Err(failure) => self.error_event(&failure.into()),
        }
    }

    fn error_event(&mut self, error: &OpenAiError) -> Vec<u8> {
        self.has_ended = true;
        let mut out = Vec::new();
        // The client has text of an earlier owner, which may end in the middle of a line.
        if self.framing.as_mut().is_some_and(Framing::gives_up) {
            out.extend_from_slice(b"\n\n");
        }
        self.framer.event(error.to_json().as_bytes(), &mut out);
        out
    }

    async fn step(&mut self, event: FollowEvent) -> Result<Step, crate::wire::api_error::ApiError> {
        Ok(match event {
            FollowEvent::Status(job) => self.status(&job),
            FollowEvent::Chunks(chunks) => {
                let mut out = Vec::new();
                for StreamChunk { chunk, .. } in chunks {
                    // Parts of text are sent as they arrive.
                    let is_text = chunk.output.starts_with(b"\"");
                    let whole = if is_text { Some(chunk.output) } else { self.parts.push(chunk) };
                    let Some(output) = whole else { continue };
                    match self.framer.chunk(&output) {
                        Ok(text) => out.extend(text),
                        Err(error) if out.is_empty() => return Ok(Step::Fail(error)),
                        // The elements before the error are part of the answer.
                        Err(error) => {
                            self.framer.event(error.to_json().as_bytes(), &mut out);
                            return Ok(Step::End(out));
                        }
                    }
                }
                self.sent = Some(self.attempt);
                if out.is_empty() { Step::Nothing } else { Step::Send(out) }
            }
            FollowEvent::Ended(job) => self.ended(*job).await?,
        })
    }

    /// A new attempt starts the answer again, which a client could not tell from more text. So the stream fails.
    fn status(&mut self, job: &JobSnapshot) -> Step {
        if self.attempt != job.row.attempt {
            self.parts.clear();
        }
        self.attempt = job.row.attempt;
        let is_other = |sent| sent != job.row.attempt || job.row.state == JobState::InQueue;
        let sent_before = self.framing.as_ref().and_then(Framing::attempt_before);
        if self.sent.or(sent_before).is_some_and(is_other) {
            Step::Fail(OpenAiError::worker_lost())
        } else {
            Step::Nothing
        }
    }

    async fn ended(&mut self, job: JobSnapshot) -> Result<Step, crate::wire::api_error::ApiError> {
        self.guard.disarm();
        if job.row.state != JobState::Completed {
            return Ok(Step::Fail(OpenAiError::of_job(&job)));
        }
        let mut out = Vec::new();
        if self.sent.is_none() {
            // The worker did not stream, so the result is sent in one piece.
            let result = whole::result(&self.guard.jobs, self.guard.job, job).await?;
            match self.framer.chunk(&result) {
                Ok(text) => out = text,
                Err(error) => return Ok(Step::Fail(error)),
            }
        }
        if self.ends_with_done && !self.framer.done {
            self.framer.event(b"[DONE]", &mut out);
        }
        Ok(Step::End(out))
    }
}
