//! Creates segments.

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

/// An end of the log: a segment and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct LogEnd {
    /// The number of the last segment; 0 if there is none.
    pub number: u64,
    /// The salt of the last segment.
    pub salt: u64,
    /// The offset at which its frames end, in bytes.
    pub at: u64,
}

impl LogEnd {
    /// The end of a log without segments.
    pub const NOTHING: Self = Self { number: 0, salt: 0, at: 0 };
}

/// Why no segment was created.
pub(super) struct NewSegmentError {
    pub error: io::Error,
    /// Whether the segment may exist after a crash.
    pub may_be_there: bool,
}

impl NewSegmentError {
    fn before(error: io::Error) -> Self {
        Self { error, may_be_there: false }
    }
}

/// Creates a segment that continues the log at `end` and contains `frames`. Returns it with the offsets of the frames'
/// records. The segment gets its name once its content is durable.
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
        .ok_or_else(|| NewSegmentError::before(io::Error::other("the last segment number is in use")))?;
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
    // A file whose sync failed is not used again. If it cannot be removed, the next start removes it.
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
    let mut segment =
        ActiveSegment::begin(Arc::new(file), &path, header, limits.ahead_bytes, limits.segment_bytes)?;
    let places = frames.map(|frame| segment.write(frame)).collect::<io::Result<_>>()?;
    segment.file.sync_all()?;
    segment.synced = segment.end;
    Ok((segment, places))
}
