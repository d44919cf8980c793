//! Salvage: copies the readable parts of a damaged data directory into a new one.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use longshore_model::{Durability, JobKey};

use super::blob_file::{BLOBS, blob_path, check_blob};
use super::error::from_io;
use super::index::Column;
use super::log::Log;
use super::log::frame::Frame;
use super::log::limits::SegmentLimits;
use super::log::names;
use super::log::payload::PayloadRef;
use super::log::record::{OutcomeRecord, RawRecord, Record, each};
use super::log::{attempt_row, job_row};
use super::read;
use super::read::catalog;
use super::recovery::Recovered;
use super::recovery::data_dir::DataDir;
use super::recovery::scan::{ScannedFrame, read_range};
use super::verify::check_out_of_line;
use super::walk::{Damage, Part, Walker, walk};
use super::write::creation_order::CreationOrder;
use super::write::encode;
use crate::{Payload, StoreError, Write};

/// Jobs per page.
const PAGE_JOBS: usize = 1_000;

/// The result of [`salvage`].
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// The number of jobs in the new directory.
    pub jobs: u64,
    /// The number of large payloads in the new directory.
    pub blobs: u64,
    /// The parts that could not be read, in the order of reading.
    pub damages: Vec<Damage>,
    /// The ids of jobs that were read but not copied, each with the reason.
    pub dropped: Vec<(String, &'static str)>,
    /// The names of other entries of the old directory, ascending. They were not copied.
    pub left: Vec<String>,
}

/// Copies the readable records and large payloads of the data directory `dir` into `to`, which must be empty or missing.
/// Changes nothing in `dir`.
///
/// A lost record takes its change with it: a job may have an earlier state, and a deleted job may be back. A job without
/// its endpoint is dropped, and so is a non-terminal job without its input.
///
/// # Errors
/// [`StoreError::Unusable`] if a server has `dir` open or `to` is not empty. [`StoreError::Io`] or [`StoreError::Full`]
/// if `to` cannot be written.
pub fn salvage(dir: &Path, to: &Path) -> Result<Salvaged, StoreError> {
    let _lock = DataDir::lock_as_it_is(dir)?;
    if fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(StoreError::Unusable(format!("{} is not empty; name a new directory", to.display())));
    }
    let left = left(dir).map_err(|error| from_io(&error))?;
    let data_dir = DataDir::open(to)?;
    let log = Log::open(&data_dir.log(), SegmentLimits::default(), Recovered::nothing())?;
    let blobs = dir.join(BLOBS);
    let salvaged = Salvaged { left, ..Salvaged::default() };
    let mut salvage = Salvage { log, blobs: &blobs, with_blobs: BTreeSet::new(), salvaged };
    walk(&dir.join(names::LOG), &mut salvage)?;
    salvage.drop_incomplete()?;
    salvage.copy_blobs(&to.join(BLOBS))?;
    salvage.log.seal()?;
    Ok(salvage.salvaged)
}

fn left(dir: &Path) -> io::Result<Vec<String>> {
    let known = [names::LOG, names::END, BLOBS, "lock"];
    let mut left = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !known.contains(&&*name) {
            left.push(name);
        }
    }
    left.sort_unstable();
    Ok(left)
}

struct Salvage<'a> {
    log: Log,
    /// The old directory of large payloads.
    blobs: &'a Path,
    /// Jobs with a record, live or dead, that names a large payload.
    with_blobs: BTreeSet<JobKey>,
    salvaged: Salvaged,
}

impl Walker for Salvage<'_> {
    fn segment(&mut self, _: &Part) -> Result<(), StoreError> {
        Ok(())
    }

    fn frame(&mut self, part: &Part, found: ScannedFrame<'_>) -> Result<(), StoreError> {
        let mut frame = self.log.blank_frame();
        for raw in each(found.records, 0) {
            let at = found.records_at + raw.as_ref().map_or(0, |raw| raw.at) as u32;
            let copied = raw.map_err(|malformed| (u64::from(at), malformed.to_string()));
            let copied = copied.and_then(|raw| self.copy(&mut frame, part, raw, at, found.end));
            if let Err((at, what)) = copied {
                self.damage(Damage::in_segment(part.header.number, at, what));
            }
        }
        if frame.is_empty() {
            self.log.recycle(frame);
            return Ok(());
        }
        self.log.append(frame, Durability::Buffered)?;
        if self.log.is_overdue() { self.log.sync() } else { Ok(()) }
    }

    fn damage(&mut self, damage: Damage) {
        self.salvaged.damages.push(damage);
    }
}

impl Salvage<'_> {
    /// Adds a record to the frame if the record and its payload can be read. The error is the offset and the cause.
    fn copy(
        &mut self,
        frame: &mut Frame,
        part: &Part,
        raw: RawRecord<'_>,
        at: u32,
        end: u32,
    ) -> Result<(), (u64, String)> {
        let malformed = |malformed: super::log::coding::Malformed| (u64::from(at), malformed.to_string());
        let record = raw.parse().map_err(malformed)?;
        match record {
            // The new log starts at its own first segment.
            Record::LogStart(_) => return Ok(()),
            Record::Job(key, body) => _ = job_row::decode(key, body).map_err(malformed)?,
            Record::Attempt(_, n, body) => _ = attempt_row::decode(n, body).map_err(malformed)?,
            // A missing file is no damage if a later record deletes the job. `copy_blobs` checks the files at the end.
            Record::Input(job, PayloadRef::Blob(..))
            | Record::Outcome(job, OutcomeRecord { output: Some(PayloadRef::Blob(..)), .. }) => {
                self.with_blobs.insert(job);
            }
            _ => {}
        }
        let Some(beside) = record.out_of_line() else {
            frame.copy(raw.bytes, None);
            return Ok(());
        };
        let range = beside.range(at);
        check_out_of_line(&part.file, beside, at, end).map_err(|what| (range.start, what))?;
        let payload =
            read_range(&part.file, range, end).map_err(|error| (u64::from(at), error.to_string()))?;
        frame.copy(raw.bytes, Some((beside.place_of_distance(raw.bytes.len()), payload.into())));
        Ok(())
    }

    /// Drops the jobs that no worker could run: without input or endpoint each attempt would fail.
    fn drop_incomplete(&mut self) -> Result<(), StoreError> {
        let shared = Arc::clone(self.log.shared());
        let (values, last) = catalog::values(&shared.index());
        let endpoints: BTreeSet<_> =
            catalog::read(&values, last)?.endpoints.iter().map(|endpoint| endpoint.no).collect();
        let mut numbers: Vec<_> = shared.index().rows().map(|(job, _)| job.endpoint).collect();
        numbers.dedup();
        for endpoint in numbers {
            let mut after = JobKey { endpoint, seq: 0 };
            loop {
                let rows = read::jobs(&shared, after, PAGE_JOBS)?;
                let Some(last) = rows.last() else { break };
                after = last.key;
                let mut deletions = Vec::new();
                for row in &rows {
                    let why = if !endpoints.contains(&endpoint) {
                        "its endpoint is lost"
                    } else if !row.state.is_terminal() && !self.has_input(row.key)? {
                        "its input is lost"
                    } else {
                        self.salvaged.jobs += 1;
                        continue;
                    };
                    self.salvaged.dropped.push((row.id.to_string(), why));
                    deletions.push(Write::DeleteJob(row.key));
                }
                self.write(&deletions)?;
            }
        }
        Ok(())
    }

    fn has_input(&self, job: JobKey) -> Result<bool, StoreError> {
        if self.log.shared().index().get(job, Column::Input).is_none() {
            return Ok(false);
        }
        if !self.with_blobs.contains(&job) {
            return Ok(true);
        }
        Ok(match read::input(self.log.shared(), job)? {
            Some(Payload::Blob(_)) if self.log.shared().index().has_remote_payloads() => true,
            Some(Payload::Blob(blob)) => check_blob(self.blobs, &blob.name, blob.bytes).is_ok(),
            input => input.is_some(),
        })
    }

    fn write(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        let mut frame = self.log.blank_frame();
        encode::batch(&mut frame, &mut CreationOrder::new(std::iter::empty(), 0), writes)?;
        self.log.append(frame, Durability::Buffered)
    }

    /// Copies the large payloads of live records. Clears the outcome of a job whose output cannot be copied.
    fn copy_blobs(&mut self, to: &Path) -> Result<(), StoreError> {
        let shared = Arc::clone(self.log.shared());
        if shared.index().has_remote_payloads() {
            return Ok(());
        }
        for job in std::mem::take(&mut self.with_blobs) {
            if shared.index().get(job, Column::Row).is_none() {
                continue;
            }
            let output = read::outcome(&shared, job)?.and_then(|outcome| outcome.output);
            for payload in [read::input(&shared, job)?, output.clone()].into_iter().flatten() {
                let Payload::Blob(blob) = &payload else { continue };
                let is_output = output.as_ref() == Some(&payload);
                match copy_blob(self.blobs, to, &blob.name, blob.bytes) {
                    Ok(()) => self.salvaged.blobs += 1,
                    Err(what) => {
                        self.damage(Damage { file: format!("{BLOBS}/{}", blob.name), at: 0, what });
                        if is_output {
                            self.write(&[Write::ClearOutcome(job)])?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn copy_blob(from: &Path, to: &Path, name: &str, bytes: u64) -> Result<(), String> {
    check_blob(from, name, bytes)?;
    let (Some(old), Some(new)) = (blob_path(from, name), blob_path(to, name)) else {
        return Err("not a name of a payload".into());
    };
    let copied = || {
        let parent = new.parent().unwrap_or(to);
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        fs::copy(&old, &new)?;
        File::open(&new)?.sync_all()?;
        File::open(parent)?.sync_all()
    };
    copied().map_err(|error: io::Error| format!("the payload cannot be copied: {error}"))
}
