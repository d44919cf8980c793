//! A chunk as clients see it.

use bytes::Bytes;
use longshore_engine::Chunk;

use crate::wire::json_body::JsonBody;

/// Writes `{"output": …}`, with `metrics` if the chunk has some.
pub(super) fn write(chunk: &Chunk, body: &mut JsonBody) {
    body.text("{\"output\":").raw(&chunk.output);
    if let Some(metrics) = &chunk.metrics {
        body.text(",\"metrics\":").raw(metrics);
    }
    body.text("}");
}

/// Applies `step` to both of the chunk's JSON texts.
pub(super) fn try_map<E>(chunk: Chunk, mut step: impl FnMut(Bytes) -> Result<Bytes, E>) -> Result<Chunk, E> {
    let output = step(chunk.output)?;
    let metrics = chunk.metrics.map(step).transpose()?;
    Ok(Chunk { output, metrics, seam: chunk.seam })
}
