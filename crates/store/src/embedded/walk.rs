//! Reads a log that may be damaged: reports every whole frame and every damaged place. Changes nothing.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::log::LogEnd;
use super::log::end_file::{EndFile, UNPROVEN_END};
use super::log::format::SEGMENT_HEADER_BYTES;
use super::log::names;
use super::log::record::{RawRecord, Record, each};
use super::log::segment::SegmentHeader;
use super::recovery::scan::{ReadWindow, ScannedFrame, frame_at};
use super::recovery::search::{Next, next_frame};
use crate::StoreError;

/// A place in a data directory that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's path relative to the data directory.
    pub file: String,
    /// The offset in the file, in bytes.
    pub at: u64,
    /// The description, to be put behind file and offset.
    pub what: String,
}

impl Damage {
    /// Returns a damage at offset `at` of segment `number`.
    pub(super) fn in_segment(number: u64, at: impl Into<u64>, what: impl fmt::Display) -> Self {
        let file = format!("{}/{}", names::LOG, names::segment(number));
        Self { file, at: at.into(), what: what.to_string() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}: {}", self.file, self.at, self.what)
    }
}

/// Receives what [`walk`] finds.
pub(super) trait Walker {
    /// Called at the start of each readable segment.
    fn segment(&mut self, part: &Part) -> Result<(), StoreError>;

    /// Called for each frame whose header and records are whole. Payloads are not checked.
    fn frame(&mut self, part: &Part, found: ScannedFrame<'_>) -> Result<(), StoreError>;

    /// Called for each damaged place.
    fn damage(&mut self, damage: Damage);
}

/// A segment that is walked.
#[derive(Debug)]
pub(super) struct Part {
    pub header: SegmentHeader,
    pub file: Arc<File>,
    /// The offset at which the frames end at the latest.
    pub end: u64,
    /// Every frame before this offset was durable. 0 if not known.
    durable: u64,
}

/// Reads the log in the directory `log`, from its first segment to its last.
///
/// # Errors
/// If the directory cannot be read, or the walker fails.
pub(super) fn walk(log: &Path, walker: &mut dyn Walker) -> Result<(), StoreError> {
    let known = EndFile::read(log).unwrap_or_else(|error| {
        let what = match error {
            StoreError::Corrupt(_) => {
                format!("the file is damaged; {UNPROVEN_END}; take a copy of the directory before you remove the file")
            }
            other => other.to_string(),
        };
        walker.damage(Damage { file: names::END.into(), at: 0, what });
        None
    });
    let numbers =
        names::numbers_in(log).map_err(|error| StoreError::Io(format!("cannot read `log`: {error}")))?;
    let mut parts = Vec::new();
    for &number in &numbers {
        match open(log, number) {
            Ok(part) => parts.push(part),
            Err(damage) => walker.damage(damage),
        }
    }
    let oldest = log_start(&parts);
    let newest = numbers.last().copied().into_iter().chain(known.map(|known| known.number)).max();
    for missing in (oldest..=newest.unwrap_or(0)).filter(|number| numbers.binary_search(number).is_err()) {
        walker.damage(Damage::in_segment(missing, 0_u32, "the file is missing"));
    }
    // Earlier segments are no longer part of the log.
    parts.retain(|part| part.header.number >= oldest);
    for at in 0..parts.len() {
        let seal = parts.get(at + 1).map(|next| next.header);
        seal_part(&mut parts[at], seal, known, walker);
        walk_part(&parts[at], walker)?;
    }
    Ok(())
}

fn open(log: &Path, number: u64) -> Result<Part, Damage> {
    let unreadable =
        |error: io::Error| Damage::in_segment(number, 0_u32, format_args!("cannot be read: {error}"));
    let file = File::open(log.join(names::segment(number))).map_err(unreadable)?;
    let header = SegmentHeader::read(&file, number).map_err(|error| {
        let what = match error {
            StoreError::Corrupt(_) => "the header is damaged".to_owned(),
            other => other.to_string(),
        };
        Damage::in_segment(number, 0_u32, what)
    })?;
    let end = file.metadata().map_err(unreadable)?.len();
    Ok(Part { header, file: Arc::new(file), end, durable: 0 })
}

/// Returns the number of the first segment of the log.
fn log_start(parts: &[Part]) -> u64 {
    let Some(newest) = parts.last() else { return 1 };
    let mut oldest = newest.header.oldest;
    let mut window = ReadWindow::new(&newest.file, newest.end);
    let mut at = SEGMENT_HEADER_BYTES;
    while let Ok(Some(found)) = frame_at(&mut window, newest.header.salt, at) {
        let records = each(found.records, 0).flatten().filter_map(|raw| RawRecord::parse(raw).ok());
        for record in records {
            if let Record::LogStart(named) = record {
                oldest = named.clamp(1, newest.header.number);
            }
        }
        at = found.end;
    }
    oldest
}

/// Sets where a segment ends: from the header of the next segment, or from `log-end`.
fn seal_part(part: &mut Part, seal: Option<SegmentHeader>, known: Option<LogEnd>, walker: &mut dyn Walker) {
    let SegmentHeader { number, salt, .. } = part.header;
    if let Some(seal) = seal.filter(|seal| seal.number == number + 1) {
        if seal.previous_salt != salt {
            walker.damage(Damage::in_segment(number, 24_u32, "the next segment continues another one"));
        } else if seal.previous_end > part.end {
            let what = format_args!("the file ends here, but had frames up to byte {}", seal.previous_end);
            walker.damage(Damage::in_segment(number, part.end, what));
        } else {
            part.end = seal.previous_end;
        }
        part.durable = part.end;
    } else if let Some(known) = known.filter(|known| (known.number, known.salt) == (number, salt)) {
        if known.at > part.end {
            let what = format_args!("the file ends here, but had frames up to byte {}", known.at);
            walker.damage(Damage::in_segment(number, part.end, what));
        }
        part.durable = known.at;
    }
}

fn walk_part(part: &Part, walker: &mut dyn Walker) -> Result<(), StoreError> {
    let SegmentHeader { number, salt, .. } = part.header;
    walker.segment(part)?;
    let mut window = ReadWindow::new(&part.file, part.end);
    let mut at = SEGMENT_HEADER_BYTES;
    while u64::from(at) < part.end {
        let mut why = "there is no whole frame".to_owned();
        match frame_at(&mut window, salt, at) {
            Ok(Some(found)) => {
                at = found.end;
                walker.frame(part, found)?;
                continue;
            }
            Ok(None) => {}
            Err(error) => why = format!("cannot be read: {error}"),
        }
        // Before the durable end every later frame counts. Behind it only a frame counts that was written when the frame
        // at `at` was durable: others may be left of a torn end.
        let synced_over = if u64::from(at) < part.durable { SEGMENT_HEADER_BYTES - 1 } else { at };
        let next = next_frame(&part.file, salt, at, synced_over, part.end);
        let next = next.unwrap_or_else(|error| {
            why = format!("cannot be read: {error}");
            Next::TooMany
        });
        match next {
            Next::At(next) => {
                walker.damage(Damage::in_segment(number, at, format_args!("{why} before byte {next}")));
                at = next;
            }
            Next::TooMany => {
                walker.damage(Damage::in_segment(number, at, format_args!("{why} from here on")));
                return Ok(());
            }
            Next::None => {
                if u64::from(at) < part.durable {
                    let end = part.durable;
                    walker.damage(Damage::in_segment(
                        number,
                        at,
                        format_args!("{why} before the end at byte {end}"),
                    ));
                }
                return Ok(());
            }
        }
    }
    Ok(())
}
