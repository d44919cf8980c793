//! Records: each says the full state of something. See `format.rs` for their bodies.

use longshore_model::{Counters, EndpointNo, Epoch, JobKey, Millis, ShardId};

use super::coding::{Decoder, Malformed};
use super::format::kind;
use super::payload::{OutOfLine, PayloadRef};
use crate::{StreamRow, WebhookRow};

/// The bytes of a record.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct RawRecord<'a> {
    /// Where it begins, from the first byte of what it was found in.
    pub at: usize,
    /// All of it.
    pub bytes: &'a [u8],
    kind: u8,
    body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// The record at this place among others.
    pub fn at(records: &'a [u8], at: usize) -> Result<Self, Malformed> {
        let from = records.get(at..).ok_or(Malformed("a record"))?;
        let mut decoder = Decoder::new(from);
        let kind = decoder.byte("a record's kind")?;
        let body = decoder.bytes("a record's body")?;
        Ok(Self { at, bytes: &from[..from.len() - decoder.rest().len()], kind, body })
    }

    /// Its length, from its first bytes; `None` if they are too few to tell.
    pub fn length(first: &[u8]) -> Option<u64> {
        let mut decoder = Decoder::new(first.get(1..)?);
        let body = decoder.number("a record's body").ok()?;
        body.checked_add((first.len() - decoder.rest().len()) as u64)
    }

    /// What it says.
    pub fn parse(self) -> Result<Record<'a>, Malformed> {
        Record::decode(self.kind, self.body)
    }
}

/// All records from this place on.
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

/// What a record says.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) enum Record<'a> {
    /// A job's row, which `job_row.rs` reads.
    Job(JobKey, &'a [u8]),
    /// A job's input.
    Input(JobKey, PayloadRef<'a>),
    /// A job's outcome.
    Outcome(JobKey, OutcomeRecord<'a>),
    /// A chunk and its offset.
    Chunk(JobKey, u64, PayloadRef<'a>),
    /// Where a stream stands.
    Stream(JobKey, StreamRow),
    /// A webhook call that is owed.
    Webhook(WebhookRow),
    /// Jobs in a row are gone: the first, and how many.
    JobsDeleted(JobKey, u64),
    /// The outcome is gone.
    OutcomeDeleted(JobKey),
    /// The chunks are gone.
    ChunksDeleted(JobKey),
    /// The stream is gone.
    StreamDeleted(JobKey),
    /// Nothing is owed.
    WebhookDeleted(JobKey),
    /// An endpoint's counters.
    Counters(EndpointNo, Counters),
    /// A value of the catalog.
    Value {
        /// Its class.
        class: u8,
        /// Its id in the class.
        id: &'a [u8],
        /// Its place in the order of creation.
        rank: u64,
        /// The value.
        value: &'a [u8],
    },
    /// A value is gone: class and id.
    ValueDeleted(u8, &'a [u8]),
    /// The largest endpoint number ever given out.
    LastEndpoint(u32),
    /// A shard's epoch.
    Epoch(ShardId, Epoch),
    /// The first segment that belongs to the log.
    LogStart(u64),
}

/// An outcome as its record has it.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct OutcomeRecord<'a> {
    /// The output.
    pub output: Option<PayloadRef<'a>>,
    /// The error.
    pub error: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// The bytes that it keeps beside it.
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
            kind::STREAM => {
                let (job, next, drained) = (job(&mut at)?, at.number("an offset")?, at.number("an offset")?);
                Self::Stream(job, StreamRow { next, consumed: drained })
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

/// Largest number of an endpoint: 23 bits of a job's row key.
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

/// An outcome with an output.
pub(in crate::embedded) const OUTPUT: u8 = 1;
/// An outcome with an error.
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
