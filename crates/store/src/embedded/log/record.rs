//! Records: each has the full state of one row or deletes it. `format.rs` describes their bodies.

use longshore_model::{Attempt, Counters, EndpointNo, Epoch, JobKey, LastPosts, Millis, ShardId};

use super::coding::{Decoder, Malformed};
use super::format::kind;
use super::payload::{OutOfLine, PayloadRef};
use crate::{StreamRow, WebhookRow};

/// The bytes of a record.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct RawRecord<'a> {
    /// The offset of the record in the bytes that were searched.
    pub at: usize,
    /// The whole record: kind, length and body.
    pub bytes: &'a [u8],
    kind: u8,
    body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// Splits off the record at offset `at` of `records`.
    pub fn at(records: &'a [u8], at: usize) -> Result<Self, Malformed> {
        let from = records.get(at..).ok_or(Malformed("a record"))?;
        let mut decoder = Decoder::new(from);
        let kind = decoder.byte("a record's kind")?;
        let body = decoder.bytes("a record's body")?;
        Ok(Self { at, bytes: &from[..from.len() - decoder.rest().len()], kind, body })
    }

    /// Returns the length in bytes of the record that begins with `first`; `None` if these bytes are too few.
    pub fn length(first: &[u8]) -> Option<u64> {
        let mut decoder = Decoder::new(first.get(1..)?);
        let body = decoder.number("a record's body").ok()?;
        body.checked_add((first.len() - decoder.rest().len()) as u64)
    }

    /// Decodes the record's body.
    pub fn parse(self) -> Result<Record<'a>, Malformed> {
        Record::decode(self.kind, self.body)
    }
}

/// Returns all records from offset `from` on. Ends after the first malformed one.
pub(in crate::embedded) fn each(
    records: &[u8],
    from: usize,
) -> impl Iterator<Item = Result<RawRecord<'_>, Malformed>> {
    let mut next = from;
    std::iter::from_fn(move || {
        if next >= records.len() {
            return None;
        }
        let record = RawRecord::at(records, next);
        next = record.as_ref().map_or(usize::MAX, |record| next + record.bytes.len());
        Some(record)
    })
}

/// A record of the log, decoded and with a valid checksum.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) enum Record<'a> {
    /// A job's row, encoded; `job_row.rs` decodes it.
    Job(JobKey, &'a [u8]),
    /// A job's stored input.
    Input(JobKey, PayloadRef<'a>),
    /// A job's output and error.
    Outcome(JobKey, OutcomeRecord<'a>),
    /// A chunk with its offset.
    Chunk(JobKey, u64, PayloadRef<'a>),
    /// An ended attempt of a job with its number, encoded; `attempt_row.rs` decodes it.
    Attempt(JobKey, Attempt, &'a [u8]),
    /// The offsets of a job's stream.
    Stream(JobKey, StreamRow),
    /// A job's pending webhook call.
    Webhook(WebhookRow),
    /// The first of several deleted jobs with consecutive sequence numbers, and their count.
    JobsDeleted(JobKey, u64),
    /// Deletes a job's outcome.
    OutcomeDeleted(JobKey),
    /// Deletes a job's chunks.
    ChunksDeleted(JobKey),
    /// Deletes a job's stream row and chunks.
    StreamDeleted(JobKey),
    /// Deletes a job's webhook call.
    WebhookDeleted(JobKey),
    /// The counters of an endpoint.
    Counters(EndpointNo, Counters),
    /// A value of the catalog.
    Value {
        /// The class, a number of `format::class`.
        class: u8,
        /// The id, unique in the class.
        id: &'a [u8],
        /// The position in the order of creation.
        rank: u64,
        /// The stored bytes. May contain secrets.
        value: &'a [u8],
    },
    /// Deletes the value with this class and id.
    ValueDeleted(u8, &'a [u8]),
    /// The largest endpoint number ever assigned.
    LastEndpoint(u32),
    /// The epoch of a shard.
    Epoch(ShardId, Epoch),
    /// The number of the first segment of the log.
    LogStart(u64),
}

/// An outcome as stored in its record.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct OutcomeRecord<'a> {
    /// The output, or the latest progress value; `None` if there is none.
    pub output: Option<PayloadRef<'a>>,
    /// The error as text; `None` if there is none.
    pub error: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// Returns the place of the record's out-of-line payload; `None` if it has none.
    pub fn out_of_line(&self) -> Option<OutOfLine> {
        match self {
            Self::Input(_, PayloadRef::OutOfLine(beside))
            | Self::Chunk(_, _, PayloadRef::OutOfLine(beside))
            | Self::Outcome(_, OutcomeRecord { output: Some(PayloadRef::OutOfLine(beside)), .. }) => {
                Some(*beside)
            }
            _ => None,
        }
    }

    fn decode(kind: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut at = Decoder::new(body);
        let record = match kind {
            kind::JOB => return Ok(Self::Job(job(&mut at)?, at.rest())),
            kind::INPUT => Self::Input(job(&mut at)?, PayloadRef::decode(&mut at)?),
            kind::OUTCOME => Self::Outcome(job(&mut at)?, outcome(&mut at)?),
            kind::CHUNK => Self::Chunk(job(&mut at)?, at.number("an offset")?, PayloadRef::decode(&mut at)?),
            kind::ATTEMPT => {
                let (job, n) = (job(&mut at)?, at.small("an attempt's number")?);
                return Ok(Self::Attempt(job, Attempt(n), at.rest()));
            }
            kind::STREAM => {
                let (job, next, consumed) = (job(&mut at)?, at.number("an offset")?, at.number("an offset")?);
                let posts = LastPosts::from_stored(at.rest()).ok_or(Malformed("numbers of posts"))?;
                return Ok(Self::Stream(job, StreamRow { next, consumed, posts }));
            }
            kind::WEBHOOK => Self::Webhook(WebhookRow {
                job: job(&mut at)?,
                attempts: at.small("attempts")?,
                due_at: Millis(at.number("a time")?),
            }),
            kind::JOBS_DELETED => jobs_deleted(&mut at)?,
            kind::OUTCOME_DELETED => Self::OutcomeDeleted(job(&mut at)?),
            kind::CHUNKS_DELETED => Self::ChunksDeleted(job(&mut at)?),
            kind::STREAM_DELETED => Self::StreamDeleted(job(&mut at)?),
            kind::WEBHOOK_DELETED => Self::WebhookDeleted(job(&mut at)?),
            kind::COUNTERS => {
                Self::Counters(EndpointNo(at.small("an endpoint's number")?), counters(&mut at)?)
            }
            kind::VALUE => {
                let (class, rank) = (at.byte("a class")?, at.number("a rank")?);
                return Ok(Self::Value { class, rank, id: at.bytes("an id")?, value: at.rest() });
            }
            kind::VALUE_DELETED => return Ok(Self::ValueDeleted(at.byte("a class")?, at.rest())),
            kind::LAST_ENDPOINT => Self::LastEndpoint(at.small("an endpoint's number")?),
            kind::EPOCH => Self::Epoch(ShardId(at.byte("a shard")?), Epoch(at.number("an epoch")?)),
            kind::LOG_START => Self::LogStart(at.number("a segment's number")?),
            _ => return Err(Malformed("a known kind of record")),
        };
        at.end()?;
        Ok(record)
    }
}

/// Largest endpoint number: a job's row key has 23 bits for it.
pub(in crate::embedded) const ENDPOINT_NO_MAX: u32 = (1 << 23) - 1;

fn job(at: &mut Decoder<'_>) -> Result<JobKey, Malformed> {
    let key = JobKey {
        endpoint: EndpointNo(at.small("an endpoint's number")?),
        seq: at.number("a sequence number")?,
    };
    if key.endpoint.0 > ENDPOINT_NO_MAX || key.seq > JobKey::SEQ_MAX {
        return Err(Malformed("a job"));
    }
    Ok(key)
}

fn outcome<'a>(at: &mut Decoder<'a>) -> Result<OutcomeRecord<'a>, Malformed> {
    let flags = at.byte("flags")?;
    if flags > 3 {
        return Err(Malformed("known flags"));
    }
    let output = if flags & OUTPUT != 0 { Some(PayloadRef::decode(at)?) } else { None };
    let error = if flags & ERROR != 0 { Some(at.text("an error")?) } else { None };
    Ok(OutcomeRecord { output, error })
}

/// Flag of an outcome with an output.
pub(in crate::embedded) const OUTPUT: u8 = 1;
/// Flag of an outcome with an error.
pub(in crate::embedded) const ERROR: u8 = 2;

fn jobs_deleted<'a>(at: &mut Decoder<'_>) -> Result<Record<'a>, Malformed> {
    let (first, count) = (job(at)?, at.number("a number of jobs")?);
    match count.checked_sub(1).and_then(|more| first.seq.checked_add(more)) {
        Some(last) if last <= JobKey::SEQ_MAX => Ok(Record::JobsDeleted(first, count)),
        _ => Err(Malformed("a range of jobs")),
    }
}

fn counters(at: &mut Decoder<'_>) -> Result<Counters, Malformed> {
    let mut count = || at.number("a count");
    Ok(Counters {
        completed: count()?,
        failed: count()?,
        retried: count()?,
        cancelled: count()?,
        reserved_seq: count()?,
        purged_until: Millis(count()?),
    })
}
