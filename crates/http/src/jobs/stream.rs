//! `stream`: the chunks of a job's stream.

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{StreamFrom, StreamPage};
use longshore_model::limits::{STREAM_WAIT_MS_DEFAULT, WAIT_MS_MAX};
use longshore_model::{JobState, StreamShape};

use super::chunk;
use super::follow::events as follow;
use crate::gate::call::Call;
use crate::gate::peer;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::sse;

/// A response gets no further chunk once its chunks have this many bytes.
const ANSWER_BYTES: usize = 20_000_000;

/// The mount of a poll, which decides the format of its response.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamFormat {
    /// As the specification says, unless the endpoint or the server is set otherwise.
    Specified,
    /// The format of the official client libraries, which read objects only.
    Sdk,
}

/// `GET|POST /stream/{job}`: consumes the chunks, or with `?offset=N` reads from there and consumes none. Waits for the
/// next chunk up to `?wait=` ms: clients ask again without a pause, and give up after 10 s. A reader that accepts
/// `text/event-stream` gets all present and future chunks as events, and with `?outputBytesMax=N` no larger output.
pub(super) async fn stream(call: Call, mount: StreamFormat) -> Result<Response, ApiError> {
    let job = call.job()?;
    let query = call.query()?;
    let wait_ms = query.integer("wait", 0, WAIT_MS_MAX)?.unwrap_or(STREAM_WAIT_MS_DEFAULT);
    let offset = query.integer("offset", 0, u64::MAX)?;
    let output_bytes_max = query.integer("outputBytesMax", 0, u64::MAX)?;
    if sse::are_wanted(&call.headers) {
        return follow(call, offset, output_bytes_max.unwrap_or(u64::MAX)).await;
    }
    let from = match offset {
        Some(offset) => StreamFrom::Offset(offset),
        None => StreamFrom::Drained,
    };
    if let StreamFrom::Drained = from {
        // Chunks that no client reads would be lost.
        peer::hands_over();
    }
    let (state, endpoint) = call.into_wait();
    let shape = match mount {
        StreamFormat::Specified => state.stream_shape_of(&endpoint.record()),
        StreamFormat::Sdk => StreamShape::Object,
    };
    let wait = peer::left_of(Duration::from_millis(wait_ms));
    let page = endpoint.jobs().read_stream(job, from, wait).await?;
    let (body, next_offset) = written(&page, shape);
    match (from, next_offset) {
        (StreamFrom::Drained, Some(next_offset)) => {
            // A reader that disconnects before it has the chunks finds them again.
            Ok(body.into_response_then(move || endpoint.jobs().consume(job, next_offset)))
        }
        _ => Ok(body.into_response()),
    }
}

/// The response, and the offset after its last chunk.
fn written(page: &StreamPage, shape: StreamShape) -> (JsonBody, Option<u64>) {
    let mut bytes = 0;
    let fitting = page.chunks.iter().take_while(|chunk| {
        let fits = bytes < ANSWER_BYTES;
        bytes += chunk.chunk.bytes();
        fits
    });
    let chunks = &page.chunks[..fitting.count()];
    let mut body = JsonBody::new();
    body.hold(&page.room);
    if shape == StreamShape::Object {
        // Clients stop at the first terminal state, and would miss later chunks: the terminal state is shown with the
        // last chunks.
        let all_here = !page.more && chunks.len() == page.chunks.len();
        let state = page.job.row.state;
        let state = if state.is_terminal() && !all_here { JobState::InProgress } else { state };
        body.text("{\"status\":").string(state.as_str()).text(",\"stream\":");
    }
    for (at, chunk) in chunks.iter().enumerate() {
        body.text(if at == 0 { "[" } else { "," });
        chunk::write(&chunk.chunk, &mut body);
    }
    body.text(if chunks.is_empty() { "[]" } else { "]" });
    if shape == StreamShape::Object {
        body.text("}");
    }
    (body, chunks.last().map(|chunk| chunk.offset + 1))
}
