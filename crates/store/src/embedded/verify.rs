//! Verification: reads every record and payload of a data directory and compares it with its checksum or length.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use longshore_model::JobKey;

use super::blob_file::{BLOBS, check_blob};
use super::error;
use super::index::{Column, Index, SLOTS_MAX, Segment};
use super::log::names;
use super::log::payload::{OutOfLine, PayloadRef};
use super::log::record::{OutcomeRecord, RawRecord, Record, each};
use super::log::{attempt_row, job_row};
use super::read::catalog;
use super::recovery::scan::{ScannedFrame, read_range};
use super::walk::{Damage, Part, Walker, walk};
use crate::StoreError;

/// The counts of verified parts, and the damages.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The number of segment files.
    pub segments: u64,
    /// The number of whole frames in the segments.
    pub frames: u64,
    /// The number of records in the frames.
    pub records: u64,
    /// The number of out-of-line payloads.
    pub payloads: u64,
    /// The bytes of all out-of-line payloads.
    pub payload_bytes: u64,
    /// The number of large payloads that live records name.
    pub blobs: u64,
    /// The bytes of all these large payloads.
    pub blob_bytes: u64,
    /// The number of jobs in the log.
    pub jobs: u64,
    /// The damages, in the order of reading.
    pub damages: Vec<Damage>,
}

/// Reads the log and the large payloads of the data directory `dir`. Changes nothing. While a server runs on `dir`, the
/// latest commits may be missing, and large payloads that are deleted meanwhile are reported as damages. Large payloads
/// outside of the computer are not read.
///
/// # Errors
/// [`StoreError::Io`] if the directory cannot be read. Damages are no error.
pub fn verify(dir: &Path) -> Result<Verified, StoreError> {
    let blobs = dir.join(BLOBS);
    verify_with(dir, |name, bytes| check_blob(&blobs, name, bytes).map(drop))
}

/// Verifies like [`verify`], with large payloads that are stored elsewhere. `check_blob` gets the name and the length in
/// bytes of each large payload that a live record names; its error is what is wrong with the payload.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    dir: &Path,
    check_blob: impl FnMut(&str, u64) -> Result<(), String>,
) -> Result<Verified, StoreError> {
    let log = dir.join(names::LOG);
    // The server removes no segment while this lock is held. A read-only directory needs no lock.
    let copy_lock = File::open(log.join(names::COPY_LOCK)).ok().filter(|file| file.lock_shared().is_ok());
    let mut check = Check::new();
    walk(&log, &mut check)?;
    drop(copy_lock);
    check.check_catalog();
    check.check_blobs(check_blob);
    check.verified.jobs = check.index.rows().count() as u64;
    Ok(check.verified)
}

/// A large payload, and the place of the record that names it.
struct Blob {
    job: JobKey,
    column: Column,
    slot: usize,
    at: u32,
    name: Box<str>,
    bytes: u64,
}

struct Check {
    verified: Verified,
    index: Index,
    slot: usize,
    blobs: Vec<Blob>,
}

impl Walker for Check {
    fn segment(&mut self, part: &Part) -> Result<(), StoreError> {
        self.verified.segments += 1;
        let (number, salt, file) = (part.header.number, part.header.salt, Arc::clone(&part.file));
        let end = u32::try_from(part.end).unwrap_or(u32::MAX);
        let slot = self.index.segments.push(Segment { number, salt, file, end, live_bytes: 0 });
        let too_many = || StoreError::Io(format!("the log has more segments than the limit of {SLOTS_MAX}"));
        self.slot = slot.ok_or_else(too_many)?;
        Ok(())
    }

    fn frame(&mut self, part: &Part, found: ScannedFrame<'_>) -> Result<(), StoreError> {
        let number = part.header.number;
        self.verified.frames += 1;
        for raw in each(found.records, 0) {
            let at = found.records_at + raw.as_ref().map_or(0, |raw| raw.at) as u32;
            let record = raw.and_then(RawRecord::parse);
            let record = record.and_then(|record| match record {
                Record::Job(key, body) => job_row::decode(key, body).map(|_| record),
                Record::Attempt(_, n, body) => attempt_row::decode(n, body).map(|_| record),
                _ => Ok(record),
            });
            match record {
                Ok(record) => {
                    self.verified.records += 1;
                    self.payload(part, &found, at, &record);
                }
                Err(malformed) => self.damage(Damage::in_segment(number, at, malformed)),
            }
        }
        if let Err((at, malformed)) = self.index.apply(self.slot, found.records_at, found.records) {
            self.damage(Damage::in_segment(number, at, malformed));
        }
        Ok(())
    }

    fn damage(&mut self, damage: Damage) {
        // A malformed record is found twice: when it is decoded and when it is applied to the index.
        if self.verified.damages.last() != Some(&damage) {
            self.verified.damages.push(damage);
        }
    }
}

impl Check {
    fn new() -> Self {
        Self { verified: Verified::default(), index: Index::default(), slot: 0, blobs: Vec::new() }
    }

    fn payload(&mut self, part: &Part, found: &ScannedFrame<'_>, at: u32, record: &Record<'_>) {
        if let Some(beside) = record.out_of_line() {
            self.verified.payloads += 1;
            self.verified.payload_bytes += u64::from(beside.bytes);
            if let Err(what) = check_out_of_line(&part.file, beside, at, found.end) {
                let place = beside.range(at).start;
                self.damage(Damage::in_segment(part.header.number, place, what));
            }
        }
        let (job, column, kept) = match *record {
            Record::Input(job, kept) => (job, Column::Input, kept),
            Record::Outcome(job, OutcomeRecord { output: Some(kept), .. }) => (job, Column::Outcome, kept),
            _ => return,
        };
        if let PayloadRef::Blob(name, bytes) = kept {
            self.blobs.push(Blob { job, column, slot: self.slot, at, name: name.into(), bytes });
        }
    }

    fn check_catalog(&mut self) {
        let (values, last_endpoint_no) = catalog::values(&self.index);
        if let Err(error) = catalog::read(&values, last_endpoint_no) {
            self.damage(Damage { file: names::LOG.into(), at: 0, what: error.to_string() });
        }
    }

    /// Checks the large payloads that live records name, unless they are outside of the computer.
    fn check_blobs(&mut self, mut check_blob: impl FnMut(&str, u64) -> Result<(), String>) {
        if self.index.has_remote_payloads() {
            return;
        }
        for blob in std::mem::take(&mut self.blobs) {
            let place = self.index.get(blob.job, blob.column);
            if place.is_none_or(|place| (place.slot(), place.at()) != (blob.slot, blob.at)) {
                continue;
            }
            self.verified.blobs += 1;
            self.verified.blob_bytes = self.verified.blob_bytes.saturating_add(blob.bytes);
            if let Err(what) = check_blob(&blob.name, blob.bytes) {
                self.damage(Damage { file: format!("{BLOBS}/{}", blob.name), at: 0, what });
            }
        }
    }
}

/// Reads the out-of-line payload of the record at `record_at` and compares it with its hash.
///
/// # Errors
/// What is wrong with the payload.
pub(super) fn check_out_of_line(
    file: &File,
    beside: OutOfLine,
    record_at: u32,
    end: u32,
) -> Result<(), String> {
    match read_range(file, beside.range(record_at), end) {
        Ok(bytes) if beside.is(&bytes) => Ok(()),
        Ok(_) => Err("the payload is damaged".into()),
        Err(error) => Err(format!("the payload cannot be read: {}", error::from_io(&error))),
    }
}
