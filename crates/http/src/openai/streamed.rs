//! Answers as event streams, in the pieces that the worker yields.

use axum::response::IntoResponse as _;
use bytes::Bytes;
use longshore_engine::{EndpointError, FollowEvent, Follower, JobSnapshot, StreamChunk};
use longshore_model::{Attempt, JobState};
use tokio::time::{Instant, timeout, timeout_at};

use super::cancel_guard::CancelGuard;
use super::error::OpenAiError;
use super::parts::Parts;
use super::sse_framer::SseFramer;
use super::{Answered, whole};
use crate::wire::sse::{self, COMMENT, KEEP_ALIVE, Next};

/// Whether streams of this path end with `[DONE]`. Other streams have last events of their own.
pub(super) fn ends_with_done(path: &str) -> bool {
    matches!(path, "/v1/chat/completions" | "/v1/completions")
}

/// A stream that has begun or is about to begin.
struct Streaming {
    follower: Follower,
    frames: SseFramer,
    parts: Parts,
    ends_with_done: bool,
    /// The attempt whose chunks were sent.
    sent: Option<Attempt>,
    attempt: Attempt,
    /// The first text of the stream, read before the status was chosen.
    first: Vec<u8>,
    over: bool,
    /// The last field, so that the follower is dropped before the job is cancelled.
    caller: CancelGuard,
}

/// The consequence of one event of the job.
enum Step {
    /// The event adds no text to the stream.
    Silent,
    /// The text is sent.
    Say(Vec<u8>),
    /// The text is sent and the stream ends.
    End(Vec<u8>),
    /// The error is sent and the stream ends.
    Fail(OpenAiError),
}

/// Waits for the first chunk, then streams it and all later ones. A job that fails before has an error response. After
/// `KEEP_ALIVE` without a chunk the stream begins with a comment; later errors are events of the stream.
pub(super) async fn answer(caller: CancelGuard, ends_with_done: bool) -> Answered {
    let follower = caller.endpoint.follow(caller.job, 0).await?;
    let mut streaming = Streaming {
        follower,
        frames: SseFramer::default(),
        parts: Parts::default(),
        ends_with_done,
        sent: None,
        attempt: Attempt(0),
        first: Vec::new(),
        over: false,
        caller,
    };
    let patience = Instant::now() + KEEP_ALIVE;
    loop {
        let Ok(happening) = timeout_at(patience, streaming.follower.next()).await else {
            streaming.first = COMMENT.to_vec();
            break;
        };
        match streaming.step(happening?).await? {
            Step::Silent => {}
            Step::Say(first) => {
                streaming.first = first;
                break;
            }
            Step::End(last) => {
                (streaming.first, streaming.over) = (last, true);
                break;
            }
            Step::Fail(problem) => {
                streaming.caller.is_served();
                return Ok(problem.into_response());
            }
        }
    }
    Ok(sse::answer(streaming, Streaming::next))
}

impl Streaming {
    fn next(mut self) -> Next<Self> {
        Box::pin(async move {
            if self.frames.is_last_told {
                self.caller.is_served();
            }
            if !self.first.is_empty() {
                let first = std::mem::take(&mut self.first);
                return Some((vec![Bytes::from(first)], self));
            }
            if self.over {
                return None;
            }
            let piece = match timeout(KEEP_ALIVE, self.follower.next()).await {
                Err(_) if self.frames.is_at_line_start() => COMMENT.to_vec(),
                // A comment would split the current line.
                Err(_) => Vec::new(),
                Ok(happening) => self.written(happening).await,
            };
            // Clients disconnect after the last event, which must not cancel the job.
            if self.frames.is_last_told {
                self.caller.is_served();
            }
            if piece.is_empty() {
                return Some((Vec::new(), self));
            }
            let room = self.caller.endpoint.hold(piece.len()).await.ok()?;
            Some((vec![room.around(Bytes::from(piece))], self))
        })
    }

    /// The text to send for one event of the job. The status is sent already, so errors become events of the stream.
    async fn written(&mut self, happening: Result<FollowEvent, EndpointError>) -> Vec<u8> {
        let step = match happening {
            Ok(happening) => self.step(happening).await,
            Err(error) => Err(error.into()),
        };
        match step {
            Ok(Step::Silent) => Vec::new(),
            Ok(Step::Say(text)) => text,
            Ok(Step::End(text)) => {
                self.over = true;
                text
            }
            Ok(Step::Fail(problem)) => self.last_words(&problem),
            Err(failure) => self.last_words(&failure.into()),
        }
    }

    fn last_words(&mut self, problem: &OpenAiError) -> Vec<u8> {
        self.over = true;
        let mut out = Vec::new();
        self.frames.event(problem.to_json().as_bytes(), &mut out);
        out
    }

    async fn step(&mut self, happening: FollowEvent) -> Result<Step, crate::wire::api_error::ApiError> {
        Ok(match happening {
            FollowEvent::Status(job) => self.status(&job),
            FollowEvent::Chunks(chunks) => {
                let mut out = Vec::new();
                for StreamChunk { chunk, .. } in chunks {
                    // Parts of text are sent as they arrive.
                    let is_text = chunk.output.starts_with(b"\"");
                    let whole = if is_text { Some(chunk.output) } else { self.parts.push(chunk) };
                    let Some(output) = whole else { continue };
                    match self.frames.chunk(&output) {
                        Ok(text) => out.extend(text),
                        Err(problem) if out.is_empty() => return Ok(Step::Fail(problem)),
                        // The elements before the error are part of the answer.
                        Err(problem) => {
                            self.frames.event(problem.to_json().as_bytes(), &mut out);
                            return Ok(Step::End(out));
                        }
                    }
                }
                self.sent = Some(self.attempt);
                if out.is_empty() { Step::Silent } else { Step::Say(out) }
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
        if self.sent.is_some_and(is_other) { Step::Fail(OpenAiError::worker_lost()) } else { Step::Silent }
    }

    async fn ended(&mut self, job: JobSnapshot) -> Result<Step, crate::wire::api_error::ApiError> {
        self.caller.is_served();
        if job.row.state != JobState::Completed {
            return Ok(Step::Fail(OpenAiError::of_job(&job)));
        }
        let mut out = Vec::new();
        if self.sent.is_none() {
            // The worker did not stream, so the result is sent in one piece.
            let result = whole::result(&self.caller.endpoint, self.caller.job, job).await?;
            match self.frames.chunk(&result) {
                Ok(text) => out = text,
                Err(problem) => return Ok(Step::Fail(problem)),
            }
        }
        if self.ends_with_done && !self.frames.done {
            self.frames.event(b"[DONE]", &mut out);
        }
        Ok(Step::End(out))
    }
}
