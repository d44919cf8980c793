//! Encodes and decodes the body of an ended attempt, behind the job's key and the attempt's number:
//!
//! 1. A byte for the end, *n* time of the take, signed distance from there to the end.
//! 2. The worker, the GPU type and the reason as text; empty text for an unknown worker or GPU.
//!
//! Later versions may add fields behind these, which this one ignores.

use longshore_model::{Attempt, AttemptEnd, EndedAttempt, Millis};

use super::coding::{Decoder, Malformed, put_bytes, put_number, put_signed};

/// Appends the body of an attempt, behind its number.
pub(in crate::embedded) fn put(out: &mut Vec<u8>, attempt: &EndedAttempt) {
    out.push(attempt.end as u8);
    put_number(out, attempt.taken_at.0);
    put_signed(out, attempt.ended_at.0.wrapping_sub(attempt.taken_at.0).cast_signed());
    put_bytes(out, attempt.worker.as_ref().map_or("", |worker| worker.as_str()).as_bytes());
    put_bytes(out, attempt.gpu.as_deref().unwrap_or_default().as_bytes());
    put_bytes(out, attempt.reason.as_bytes());
}

/// Decodes the body of the attempt with the number `n`.
pub(in crate::embedded) fn decode(n: Attempt, body: &[u8]) -> Result<EndedAttempt, Malformed> {
    let mut at = Decoder::new(body);
    let end = AttemptEnd::from_number(at.byte("the end of an attempt")?);
    let taken_at = Millis(at.number("the time of a take")?);
    let lasted = at.signed("the time of the end of an attempt")?;
    let worker = match at.text("a worker")? {
        "" => None,
        id => Some(id.parse().map_err(|_| Malformed("a worker's id"))?),
    };
    Ok(EndedAttempt {
        n,
        worker,
        gpu: Some(at.text("a GPU type")?).filter(|gpu| !gpu.is_empty()).map(Into::into),
        taken_at,
        ended_at: Millis(taken_at.0.wrapping_add_signed(lasted)),
        end: end.ok_or(Malformed("a known end of an attempt"))?,
        reason: at.text("a reason")?.into(),
    })
}
