//! Answers in pieces, as the worker yields them.

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

/// Whether answers on this path end with `[DONE]`; others have marks of their own.
pub(super) fn ends_with_done(path: &str) -> bool {
    matches!(path, "/v1/chat/completions" | "/v1/completions")
}

/// An answer that has begun, or is about to.
struct Streaming {
    follower: Follower,
    frames: SseFramer,
    parts: Parts,
    ends_with_done: bool,
    /// The attempt of the chunks that were sent.
    sent: Option<Attempt>,
    attempt: Attempt,
    /// The first pieces, which decided that this is a stream.
    first: Vec<u8>,
    over: bool,
    /// Last, so that the job is cancelled when nobody follows it any more.
    caller: CancelGuard,
}

/// What becomes of an answer after something happened.
enum Step {
    /// Nothing to say yet.
    Silent,
    /// This comes next.
    Say(Vec<u8>),
    /// This is the end.
    End(Vec<u8>),
    /// It has gone wrong.
    Fail(OpenAiError),
}

/// Waits for the first chunk, and answers with it and all that follow. Until then a job that fails is a real error.
/// After a while the caller is told that its request lives, which is a promise that there is no error to come.
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
                // A comment would stand in the middle of an event.
                Err(_) => Vec::new(),
                Ok(happening) => self.written(happening).await,
            };
            // Whoever has read the last event leaves, and is free to.
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

    /// What goes to the caller after the status is out: nothing can be refused any more, only said.
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
                    // Of text the caller gets the parts as they are.
                    let is_text = chunk.output.starts_with(b"\"");
                    let whole = if is_text { Some(chunk.output) } else { self.parts.push(chunk) };
                    let Some(output) = whole else { continue };
                    match self.frames.chunk(&output) {
                        Ok(text) => out.extend(text),
                        Err(problem) if out.is_empty() => return Ok(Step::Fail(problem)),
                        // What came before it is part of the answer.
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

    /// An attempt that takes over begins from the start, which nobody could tell from more of the same.
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
            // The worker does not stream: its result in one piece.
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
