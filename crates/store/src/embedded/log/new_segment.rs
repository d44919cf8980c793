//! New segments.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::active_segment::ActiveSegment;
use super::frame::Frame;
use super::limits::SegmentLimits;
use super::names;
use super::segment::SegmentHeader;
use super::spares::{Spare, Spares};
use crate::embedded::error::is_full;

/// An end of the log: that which a new segment continues, or that which was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct LogEnd {
    /// The number of the last segment; 0 if there is none.
    pub number: u64,
    /// Its salt.
    pub salt: u64,
    /// Where its frames end.
    pub at: u64,
}

impl LogEnd {
    /// Of a log without segments.
    pub const NOTHING: Self = Self { number: 0, salt: 0, at: 0 };
}

/// Why there is no new segment, and whether a crash may show that there is one.
pub(super) struct NewSegmentError {
    pub error: io::Error,
    pub may_be_there: bool,
}

impl NewSegmentError {
    fn before(error: io::Error) -> Self {
        Self { error, may_be_there: false }
    }
}

/// Makes a segment behind the end of the log, with these frames in it, and answers where their records are. It gets its
/// name when all of it is durable.
pub(super) fn make_active_segment<'a>(
    spares: &mut Spares,
    dir: &Path,
    limits: SegmentLimits,
    end: LogEnd,
    oldest: u64,
    frames: impl Iterator<Item = &'a mut Frame>,
) -> Result<(ActiveSegment, Vec<u32>), NewSegmentError> {
    let number = end
        .number
        .checked_add(1)
        .ok_or_else(|| NewSegmentError::before(io::Error::other("segments have no more numbers")))?;
    let header = SegmentHeader {
        number,
        salt: SegmentHeader::new_salt(number),
        previous_end: end.at,
        previous_salt: end.salt,
        oldest: oldest.min(number),
    };
    let spare = spares.take().map_err(NewSegmentError::before)?;
    let (path, named) = (spare.path.clone(), dir.join(names::segment(number)));
    let filled = fill(spare, header, limits, frames).map_err(NewSegmentError::before);
    let made = filled.and_then(|made| match fs::rename(&path, &named) {
        Ok(()) => Ok(made),
        Err(error) => Err(NewSegmentError { may_be_there: !is_full(&error), error }),
    });
    // A file whose sync failed is not trusted again. One that cannot be removed is in nobody's way.
    let made = made.inspect_err(|_| _ = fs::remove_file(&path))?;
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| NewSegmentError { error, may_be_there: true })?;
    Ok(made)
}

fn fill<'a>(
    spare: Spare,
    header: SegmentHeader,
    limits: SegmentLimits,
    frames: impl Iterator<Item = &'a mut Frame>,
) -> io::Result<(ActiveSegment, Vec<u32>)> {
    let Spare { file, path } = spare;
    let mut head =
        ActiveSegment::begin(Arc::new(file), &path, header, limits.ahead_bytes, limits.segment_bytes)?;
    let places = frames.map(|frame| head.write(frame)).collect::<io::Result<_>>()?;
    head.file.sync_all()?;
    head.synced = head.end;
    Ok((head, places))
}
