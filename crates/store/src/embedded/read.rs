//! Reads of rows and payloads. Every read sees each commit that was acknowledged before the read began.

pub(in crate::embedded) mod catalog;
pub(in crate::embedded) mod pool;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{EndedAttempt, JobKey, JobRow};

use self::pool::ReadShared;
use super::error::corrupt;
use super::index::{Column, Index, RecordRef};
use super::log::coding::Malformed;
use super::log::names;
use super::log::payload::OutOfLine;
use super::log::record::{OutcomeRecord, RawRecord, Record};
use super::log::{attempt_row, job_row};
use super::recovery::scan::ReadWindow;
use crate::{ChunkRow, OutcomeRow, Payload, StoreError};

/// Bytes of the first read of a record: enough for nearly every record with its payload.
const FIRST_BYTES: u64 = 4096;
/// Distance in bytes below which neighbouring rows are read with one system call.
const NEAR_BYTES: u64 = 64 << 10;

/// Chunks per lookup in the index.
const CHUNKS_PER_LOOKUP: usize = 64;

/// Reads a job's input.
pub(super) fn input(shared: &ReadShared, job: JobKey) -> Result<Option<Payload>, StoreError> {
    let Some(spot) = span_of(&shared.index(), job, Column::Input) else { return Ok(None) };
    spot.read(|record, beside| match record {
        Record::Input(own, kept) if own == job => kept.load(beside).map(Some),
        _ => Err(spot.malformed(Malformed("the job's input"))),
    })
}

/// Reads a job's output and error.
pub(super) fn outcome(shared: &ReadShared, job: JobKey) -> Result<Option<OutcomeRow>, StoreError> {
    let Some(spot) = span_of(&shared.index(), job, Column::Outcome) else { return Ok(None) };
    spot.read(|record, beside| match record {
        Record::Outcome(own, OutcomeRecord { output, error }) if own == job => {
            let output = output.map(|output| output.load(beside)).transpose()?;
            Ok(Some(OutcomeRow { output, error: error.map(Into::into) }))
        }
        _ => Err(spot.malformed(Malformed("the job's outcome"))),
    })
}

/// Reads a page of a job's chunks. The page ends before a chunk that cannot be read. Fails only if that chunk is the first.
pub(super) fn chunks(
    shared: &ReadShared,
    job: JobKey,
    offset: u64,
    bytes_max: usize,
) -> Result<Vec<ChunkRow>, StoreError> {
    let (mut chunks, mut bytes, mut from) = (Vec::new(), 0, offset);
    loop {
        let spots: Vec<_> = {
            let index = shared.index();
            let places = index.chunks(job, from).take(CHUNKS_PER_LOOKUP);
            places.filter_map(|(offset, place)| Some((offset, FileSpan::new(&index, place)?))).collect()
        };
        let last = spots.len() < CHUNKS_PER_LOOKUP;
        for (offset, spot) in spots {
            let chunk = match chunk(job, offset, &spot) {
                Err(_) if !chunks.is_empty() => return Ok(chunks),
                chunk => chunk?,
            };
            bytes += chunk.bytes.len();
            chunks.push(chunk);
            match offset.checked_add(1) {
                Some(next) if bytes < bytes_max => from = next,
                _ => return Ok(chunks),
            }
        }
        if last {
            return Ok(chunks);
        }
    }
}

fn chunk(job: JobKey, offset: u64, spot: &FileSpan) -> Result<ChunkRow, StoreError> {
    spot.read(|record, beside| match record {
        Record::Chunk(own, at, kept) if (own, at) == (job, offset) => match kept.load(beside)? {
            Payload::Inline(bytes) => Ok(ChunkRow { offset, bytes }),
            Payload::Blob(_) => Err(spot.malformed(Malformed("a chunk's bytes"))),
        },
        _ => Err(spot.malformed(Malformed("the job's chunk"))),
    })
}

/// Reads a job's ended attempts.
pub(super) fn attempts(shared: &ReadShared, job: JobKey) -> Result<Vec<EndedAttempt>, StoreError> {
    let spots: Vec<_> = {
        let index = shared.index();
        index.attempts(job).filter_map(|(n, place)| Some((n, FileSpan::new(&index, place)?))).collect()
    };
    let attempt = |(n, spot): (_, FileSpan)| {
        spot.read(|record, _| match record {
            Record::Attempt(own, of, body) if (own, of) == (job, n) => {
                attempt_row::decode(n, body).map_err(|malformed| spot.malformed(malformed))
            }
            _ => Err(spot.malformed(Malformed("the job's attempt"))),
        })
    };
    spots.into_iter().map(attempt).collect()
}

/// Reads a page of an endpoint's jobs: at most `limit` rows after `after`, ascending.
pub(super) fn jobs(shared: &ReadShared, after: JobKey, limit: usize) -> Result<Vec<JobRow>, StoreError> {
    if after.seq >= JobKey::SEQ_MAX {
        return Ok(Vec::new());
    }
    let mut spots = Vec::new();
    {
        let index = shared.index();
        for (job, place) in index.rows_after(after).take(limit) {
            spots.extend(FileSpan::new(&index, place).map(|spot| (job, spot)));
        }
    }
    let mut rows = Vec::with_capacity(spots.len());
    let mut run = 0;
    while run < spots.len() {
        let length = near(&spots[run..]);
        read_rows(&spots[run..run + length], &mut rows)?;
        run += length;
    }
    Ok(rows)
}

/// Returns the number of leading rows that are in one segment, ascending and near each other.
fn near(spots: &[(JobKey, FileSpan)]) -> usize {
    let next_to = |pair: &[(JobKey, FileSpan)]| {
        let (one, other) = (&pair[0].1, &pair[1].1);
        one.number == other.number && one.at < other.at && u64::from(other.at - one.at) < NEAR_BYTES
    };
    1 + spots.windows(2).take_while(|pair| next_to(pair)).count()
}

fn read_rows(spots: &[(JobKey, FileSpan)], rows: &mut Vec<JobRow>) -> Result<(), StoreError> {
    let Some((_, first)) = spots.first() else { return Ok(()) };
    let mut window = ReadWindow::new(&first.file, u64::from(first.end));
    for (job, spot) in spots {
        let row = spot.with_record(&mut window, |record| match record {
            Record::Job(own, body) if own == *job => {
                job_row::decode(own, body).map_err(|malformed| spot.malformed(malformed))
            }
            _ => Err(spot.malformed(Malformed("the job's row"))),
        })?;
        rows.push(row);
    }
    Ok(())
}

/// The place of a record, with the open file: the segment may be removed from the log during the read.
struct FileSpan {
    file: Arc<File>,
    number: u64,
    at: u32,
    /// The offset at which the segment's frames end.
    end: u32,
}

fn span_of(index: &Index, job: JobKey, column: Column) -> Option<FileSpan> {
    FileSpan::new(index, index.get(job, column)?)
}

impl FileSpan {
    fn new(index: &Index, place: RecordRef) -> Option<Self> {
        let segment = index.segments.get(place.slot())?;
        Some(Self {
            file: Arc::clone(&segment.file),
            number: segment.number,
            at: place.at(),
            end: segment.end,
        })
    }

    /// Reads the record and passes it to `decode`, with a function that reads its out-of-line payload.
    fn read<T>(
        &self,
        decode: impl FnOnce(Record<'_>, &dyn Fn(OutOfLine) -> Result<Bytes, StoreError>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut window = ReadWindow::sized(&self.file, u64::from(self.end), FIRST_BYTES);
        self.with_record(&mut window, |record| decode(record, &|place| self.out_of_line(place)))
    }

    fn with_record<T>(
        &self,
        window: &mut ReadWindow<'_>,
        decode: impl FnOnce(Record<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let at = u64::from(self.at);
        let failed = |error: io::Error| self.failed(at, &error);
        // A kind and a length are at most eleven bytes.
        let first = window.get(at, 11.min(u64::from(self.end).saturating_sub(at))).map_err(failed)?;
        let length =
            first.and_then(RawRecord::length).ok_or_else(|| self.malformed(Malformed("a record")))?;
        let bytes = window.get(at, length).map_err(failed)?;
        let bytes = bytes.ok_or_else(|| self.malformed(Malformed("a whole record")))?;
        let record = RawRecord::at(bytes, 0).and_then(RawRecord::parse);
        decode(record.map_err(|malformed| self.malformed(malformed))?)
    }

    fn out_of_line(&self, place: OutOfLine) -> Result<Bytes, StoreError> {
        let range = place.range(self.at);
        if range.end > u64::from(self.end) {
            return Err(self.malformed(Malformed("a payload within the segment")));
        }
        let mut bytes = vec![0; place.bytes as usize];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        read.map_err(|error| self.failed(range.start, &error))?;
        if !place.is(&bytes) {
            return Err(corrupt(self.number, range.start, "the payload is damaged"));
        }
        Ok(bytes.into())
    }

    /// Returns the error of a failed read. A file that ends before a record in the index was truncated, which is damage
    /// and not a passing failure.
    fn failed(&self, at: u64, error: &io::Error) -> StoreError {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return corrupt(self.number, at, "the file was truncated before this place");
        }
        StoreError::Io(format!("cannot read `log/{}`, byte {at}: {error}", names::segment(self.number)))
    }

    fn malformed(&self, malformed: Malformed) -> StoreError {
        corrupt(self.number, self.at, malformed)
    }
}
