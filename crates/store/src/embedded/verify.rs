//! Reading everything in a data folder that has a checksum or a length, and comparing.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use longshore_model::JobKey;

use super::blob_file::{BLOBS, check_blob};
use super::error;
use super::index::{Column, Index, Segment};
use super::log::job_row;
use super::log::names;
use super::log::payload::{OutOfLine, PayloadRef};
use super::log::record::{OutcomeRecord, RawRecord, Record, each};
use super::read::catalog;
use super::recovery::scan::{ScannedFrame, read_range};
use super::walk::{Damage, Part, Walker, walk};
use crate::StoreError;

/// What was read, and what of it is not as it was written.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Files of the log.
    pub segments: u64,
    /// Their frames.
    pub frames: u64,
    /// The records in these.
    pub records: u64,
    /// Payloads with a checksum of their own, and their bytes.
    pub payloads: u64,
    /// See [`Self::payloads`].
    pub payload_bytes: u64,
    /// Large payloads in files that something needs, and their bytes.
    pub blobs: u64,
    /// See [`Self::blobs`].
    pub blob_bytes: u64,
    /// Jobs that are there.
    pub jobs: u64,
    /// What is damaged.
    pub damages: Vec<Damage>,
}

/// Reads the log and the large payloads of a data folder. Changes nothing. Of the folder of a running server the latest
/// may be missing, and payloads whose jobs end meanwhile.
pub fn verify(dir: &Path) -> Result<Verified, StoreError> {
    let blobs = dir.join(BLOBS);
    verify_with(dir, |name, bytes| check_blob(&blobs, name, bytes).map(drop))
}

/// As [`verify`], where the files of large payloads are somewhere else: `check_blob` gets the name and the length of each
/// that something needs, and says what is wrong with it, if something is.
pub fn verify_with(
    dir: &Path,
    check_blob: impl FnMut(&str, u64) -> Result<(), String>,
) -> Result<Verified, StoreError> {
    let log = dir.join(names::LOG);
    // No segment goes while this is held. A folder that nobody may write to needs none.
    let hold = File::open(log.join(names::COPY_LOCK)).ok().filter(|hold| hold.lock_shared().is_ok());
    let mut check = Check::new();
    walk(&log, &mut check)?;
    drop(hold);
    check.check_catalog();
    check.check_blobs(check_blob);
    check.verified.jobs = check.index.rows().count() as u64;
    Ok(check.verified)
}

/// A payload in a file, and the record that names it.
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
        self.slot = slot.ok_or_else(|| StoreError::Io("the log has too many segments".into()))?;
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
        // A record that cannot be read cannot be taken in either.
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

    /// Those that a record names which still says so.
    fn check_blobs(&mut self, mut check_blob: impl FnMut(&str, u64) -> Result<(), String>) {
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

/// What is wrong with the payload of the record at this place, if something is.
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
