//! The optional fields of a job's row: fields that few jobs have, and all fields that later versions add.
//!
//! Each field is *n* tag, *n* bytes of value, the value. Tags ascend. A reader rejects a row with an unknown tag below 64,
//! because it would serve the job wrongly. It keeps the fields from tag 64 on as bytes.
//!
//! | tag | field | value |
//! |---|---|---|
//! | 1 | the owner of the API key that submitted the job, if not the server | *n* number |
//! | 2 | that API key | its number, the highest byte first, without leading zeros; at most 8 bytes |
//! | 3 | reserved: priority, class, held | a byte |
//! | 4 | reserved: hash of the group | 4 bytes |
//! | 5 | reserved: batch and line | at most 12 bytes |
//! | 6 | reserved: failure group | 4 bytes |
//! | 64 | reserved: text of the group | text |
//! | 65 | reserved: hashes of the searched tags | 4 bytes each |
//! | 66 | reserved: until when a repeated submit is the same job | a byte |
//! | 67 | the client's trace | [`TraceContext::to_stored`], 25 bytes |
//! | 68 | when the last client retry was accepted | *n* ms since 1970, not 0 |
//! | 69 | when the first chunk of the present or last attempt arrived | *n* ms since 1970, not 0 |
//! | 70 | the type of the first GPU of the present or last worker | text, not empty |
//! | 71 | when progress values of the last attempt arrived | for each, *n* ms from the one before; of the first from the start of the attempt |
//!
//! Reserved fields are kept as bytes too. No version writes them.
//!
//! A row without a field has the field's value of [`JobRow::queued`]. So a new field needs no version: older rows have
//! the old behaviour, and an older program rejects a new row or keeps the field, depending on its tag.

use std::cmp::Ordering;
use std::sync::Arc;

use longshore_model::limits::PROGRESS_TIMES_MAX;
use longshore_model::{JobRow, KeyId, Millis, OwnerNo, TraceContext};

use super::coding::{Decoder, Malformed, put_bytes, put_number};

const OWNER: u64 = 1;
const KEY: u64 = 2;
const TRACE: u64 = 67;
const RETRIED_AT: u64 = 68;
const FIRST_CHUNK_AT: u64 = 69;
const GPU: u64 = 70;
const PROGRESS: u64 = 71;
/// The largest tag below [`OPTIONAL`] that is used or reserved.
const LAST_KNOWN: u64 = 6;
/// The first tag that a reader need not know.
const OPTIONAL: u64 = 64;

const NEWER: Malformed = Malformed(
    "job fields that this version knows; a newer version wrote the row: start that version, or a newer one",
);

/// Encodes the row's fields that differ from [`JobRow::queued`], in the order of their tags. Empty if none does.
pub(in crate::embedded) fn encode(row: &JobRow) -> Vec<u8> {
    let mut fields = Vec::new();
    if !row.submitter.owner.is_server() {
        let mut value = Vec::with_capacity(5);
        put_number(&mut value, u64::from(row.submitter.owner.0));
        put_field(&mut fields, OWNER, &value);
    }
    if let Some(key) = row.submitter.key {
        let bytes = key.number().to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        put_field(&mut fields, KEY, &bytes[zeros..]);
    }
    let (before, after) = split(row.carried.as_deref().unwrap_or_default(), TRACE);
    fields.extend_from_slice(before);
    if let Some(trace) = &row.trace {
        put_field(&mut fields, TRACE, &trace.to_stored());
    }
    for (tag, at) in [(RETRIED_AT, row.retried_at), (FIRST_CHUNK_AT, row.first_chunk_at)] {
        if at != Millis(0) {
            let mut value = Vec::with_capacity(10);
            put_number(&mut value, at.0);
            put_field(&mut fields, tag, &value);
        }
    }
    if let Some(gpu) = &row.gpu {
        put_field(&mut fields, GPU, gpu.as_bytes());
    }
    if let Some(times) = &row.progress {
        put_field(&mut fields, PROGRESS, &distances(times));
    }
    fields.extend_from_slice(after);
    fields
}

/// Splits unknown fields into those with lower tags than `tag`, and the others. Malformed ones count as lower.
fn split(carried: &[u8], tag: u64) -> (&[u8], &[u8]) {
    let mut at = Decoder::new(carried);
    while !at.rest().is_empty() {
        let from = at.rest();
        if at.number("a field's tag").is_ok_and(|next| next > tag) {
            return carried.split_at(carried.len() - from.len());
        }
        if at.bytes("a field's value").is_err() {
            break;
        }
    }
    (carried, &[])
}

fn put_field(out: &mut Vec<u8>, tag: u64, value: &[u8]) {
    // One allocation holds owner and key.
    out.reserve(18);
    put_number(out, tag);
    put_bytes(out, value);
}

/// Encodes times that ascend, each by its distance from the one before.
fn distances(times: &[u32]) -> Vec<u8> {
    let mut value = Vec::with_capacity(3 * times.len());
    let mut before = 0;
    for time in times {
        put_number(&mut value, u64::from(time.saturating_sub(before)));
        before = *time;
    }
    value
}

/// Decodes what [`distances`] has encoded.
fn from_distances(value: &[u8]) -> Result<Box<[u32]>, Malformed> {
    const WRONG: Malformed = Malformed("the times of progress values");
    let mut at = Decoder::new(value);
    let (mut times, mut last) = (Vec::new(), 0_u32);
    while !at.rest().is_empty() {
        last = last.checked_add(at.small("the time of a progress value")?).ok_or(WRONG)?;
        times.push(last);
    }
    if times.is_empty() || times.len() > PROGRESS_TIMES_MAX { Err(WRONG) } else { Ok(times.into()) }
}

/// Decodes fields that [`encode`] has encoded into the row.
pub(in crate::embedded) fn decode(fields: &[u8], row: &mut JobRow) -> Result<(), Malformed> {
    let mut at = Decoder::new(fields);
    let (mut last, mut carried) = (0, Vec::new());
    while !at.rest().is_empty() {
        let from = at.rest();
        let tag = at.number("a field's tag")?;
        let value = at.bytes("a field's value")?;
        if tag.cmp(&last) != Ordering::Greater {
            return Err(Malformed("fields in the order of their tags"));
        }
        last = tag;
        match tag {
            OWNER => row.submitter.owner = owner(value)?,
            KEY => row.submitter.key = Some(key(value)?),
            TRACE => row.trace = Some(Box::new(trace(value)?)),
            RETRIED_AT => row.retried_at = time(value, "the time of a retry")?,
            FIRST_CHUNK_AT => row.first_chunk_at = time(value, "the time of a chunk")?,
            GPU => row.gpu = Some(gpu(value)?),
            PROGRESS => row.progress = Some(from_distances(value)?),
            _ if tag > LAST_KNOWN && tag < OPTIONAL => return Err(NEWER),
            _ => carried.extend_from_slice(&from[..from.len() - at.rest().len()]),
        }
    }
    row.carried = (!carried.is_empty()).then(|| carried.into());
    Ok(())
}

fn trace(value: &[u8]) -> Result<TraceContext, Malformed> {
    const WRONG: Malformed = Malformed("a trace of 25 bytes");
    TraceContext::from_stored(value.try_into().map_err(|_| WRONG)?).ok_or(WRONG)
}

fn time(value: &[u8], what: &'static str) -> Result<Millis, Malformed> {
    let mut at = Decoder::new(value);
    let time = Millis(at.number(what)?);
    at.end()?;
    if time == Millis(0) { Err(Malformed(what)) } else { Ok(time) }
}

fn gpu(value: &[u8]) -> Result<Arc<str>, Malformed> {
    const WRONG: Malformed = Malformed("a type of GPU");
    let text = std::str::from_utf8(value).map_err(|_| WRONG)?;
    if text.is_empty() { Err(WRONG) } else { Ok(text.into()) }
}

fn owner(value: &[u8]) -> Result<OwnerNo, Malformed> {
    let mut at = Decoder::new(value);
    let owner = OwnerNo(at.small("an owner's number")?);
    at.end()?;
    if owner.is_server() { Err(Malformed("an owner's number")) } else { Ok(owner) }
}

fn key(value: &[u8]) -> Result<KeyId, Malformed> {
    let mut bytes = [0; 8];
    let zeros = bytes.len().checked_sub(value.len()).ok_or(Malformed("a key's number"))?;
    bytes[zeros..].copy_from_slice(value);
    let shortest = value.first().is_some_and(|first| *first != 0);
    let key = KeyId::from_number(u64::from_be_bytes(bytes)).filter(|_| shortest);
    key.ok_or(Malformed("a key's number"))
}

#[cfg(test)]
mod tests {
    use longshore_model::{EndpointNo, JobId, JobKey, Millis, Submitter};

    use super::*;

    fn row() -> JobRow {
        let key = JobKey { endpoint: EndpointNo(1), seq: 1 };
        JobRow::queued(key, JobId::mint(Millis(1), 0, false), Millis(1))
    }

    fn decoded(fields: &[u8]) -> Result<JobRow, Malformed> {
        let mut row = row();
        decode(fields, &mut row).map(|()| row)
    }

    #[test]
    fn a_submitter_takes_few_bytes_and_the_server_none() {
        let bytes = |owner, key: &str| {
            let submitter = Submitter { owner: OwnerNo(owner), key: KeyId::parse(key) };
            let row = JobRow { submitter, ..row() };
            let fields = encode(&row);
            assert_eq!(decoded(&fields), Ok(row));
            fields.len()
        };
        assert_eq!(bytes(0, ""), 0);
        assert_eq!(bytes(0, "admin"), 3);
        assert_eq!(bytes(0, "0123456789abcdef"), 10);
        assert_eq!(bytes(7, "0123456789abcdef"), 13);
        assert_eq!(bytes(u32::MAX, "0123456789abcdef"), 17);
    }

    #[test]
    fn a_tag_below_64_that_is_not_known_names_a_newer_version() {
        for tag in 7..64 {
            let problem = decoded(&[1, 1, 5, tag, 0]).unwrap_err();
            assert_eq!(problem, NEWER, "{tag}");
            assert!(problem.to_string().contains("newer version"), "{problem}");
        }
        assert_eq!(decoded(&[0, 0]).unwrap_err(), Malformed("fields in the order of their tags"));
    }

    #[test]
    fn reserved_and_optional_tags_are_kept_as_bytes() {
        for carried in [
            &[3, 1, 2][..],
            &[4, 4, 1, 2, 3, 4, 5, 1, 9, 6, 0],
            &[64, 2, 0xff, 0],
            &[0x80, 0x80, 0x80, 0x80, 0x10, 0],
        ] {
            let fields = [&[1, 1, 5, 2, 1, 1][..], carried].concat();
            let decoded = decoded(&fields).unwrap();
            let submitter = Submitter { owner: OwnerNo(5), key: KeyId::parse("admin") };
            assert_eq!(decoded, JobRow { submitter, carried: Some(carried.into()), ..row() });
        }
    }

    #[test]
    fn fields_of_later_versions_stay_around_the_known_ones() {
        let trace = Box::new(TraceContext::new([7; 16], [8; 8], true));
        let carried: Box<[u8]> = [64, 1, 9, 72, 1, 9].into();
        let row = JobRow {
            trace: Some(trace),
            retried_at: Millis(300),
            first_chunk_at: Millis(301),
            gpu: Some("L4".into()),
            progress: Some([0, 300, 300, u32::MAX].into()),
            carried: Some(carried),
            ..row()
        };
        let fields = encode(&row);
        assert_eq!(decoded(&fields), Ok(row));
        assert_eq!([0, 3, 30, 34, 38, 42, 53].map(|at| fields[at]), [64, 67, 68, 69, 70, 71, 72]);
    }

    #[test]
    fn a_value_has_one_encoding() {
        for bad in [
            &[1, 0][..],
            &[1, 1, 0],
            &[1, 2, 5, 5],
            &[1, 5, 0xff, 0xff, 0xff, 0xff, 0x1f],
            &[2, 0],
            &[2, 1, 0],
            &[2, 2, 0, 5],
            &[2, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[2, 1, 1, 1, 1, 5],
            &[3, 5, 1],
            &[3],
            &[67, 0],
            &[67, 1, 1],
            &[[67, 25].as_slice(), &[0; 25]].concat(),
            &[68, 0],
            &[68, 1, 0],
            &[68, 2, 1, 1],
            &[69, 0],
            &[69, 1, 0],
            &[70, 0],
            &[70, 1, 0xff],
            &[71, 0],
            &[71, 6, 1, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[[71, 33].as_slice(), &[1; 33]].concat(),
        ] {
            assert!(decoded(bad).is_err(), "{bad:?}");
        }
    }
}
