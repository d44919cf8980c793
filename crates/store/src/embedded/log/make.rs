//! New segments.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::super::error::is_full;
use super::super::frame::Frame;
use super::super::head::Head;
use super::super::limits::LogLimits;
use super::super::names;
use super::super::segment::Header;
use super::super::spares::{Spare, Spares};

/// An end of the log: that which a new segment continues, or that which was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct End {
    /// The number of the last segment; 0 if there is none.
    pub number: u64,
    /// Its salt.
    pub salt: u64,
    /// Where its frames end.
    pub at: u64,
}

impl End {
    /// Of a log without segments.
    pub const NOTHING: Self = Self { number: 0, salt: 0, at: 0 };
}

/// Why there is no new segment, and whether a crash may show that there is one.
pub(super) struct Failed {
    pub error: io::Error,
    pub may_be_there: bool,
}

impl Failed {
    fn before(error: io::Error) -> Self {
        Self { error, may_be_there: false }
    }
}

/// Makes a segment behind the end of the log, with these frames in it, and answers where their records are. It gets its
/// name when all of it is durable.
pub(super) fn make_head<'a>(
    spares: &mut Spares,
    dir: &Path,
    limits: LogLimits,
    end: End,
    oldest: u64,
    frames: impl Iterator<Item = &'a mut Frame>,
) -> Result<(Head, Vec<u32>), Failed> {
    let number = end
        .number
        .checked_add(1)
        .ok_or_else(|| Failed::before(io::Error::other("segments have no more numbers")))?;
    let header = Header {
        number,
        salt: Header::new_salt(number),
        previous_end: end.at,
        previous_salt: end.salt,
        oldest: oldest.min(number),
    };
    let spare = spares.take().map_err(Failed::before)?;
    let (path, named) = (spare.path.clone(), dir.join(names::segment(number)));
    let filled = fill(spare, header, limits, frames).map_err(Failed::before);
    let made = filled.and_then(|made| match fs::rename(&path, &named) {
        Ok(()) => Ok(made),
        Err(error) => Err(Failed { may_be_there: !is_full(&error), error }),
    });
    // A file whose sync failed is not trusted again. One that cannot be removed is in nobody's way.
    let made = made.inspect_err(|_| _ = fs::remove_file(&path))?;
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| Failed { error, may_be_there: true })?;
    Ok(made)
}

fn fill<'a>(
    spare: Spare,
    header: Header,
    limits: LogLimits,
    frames: impl Iterator<Item = &'a mut Frame>,
) -> io::Result<(Head, Vec<u32>)> {
    let Spare { file, path } = spare;
    let mut head = Head::begin(Arc::new(file), &path, header, limits.ahead_bytes, limits.segment_bytes)?;
    let places = frames.map(|frame| head.write(frame)).collect::<io::Result<_>>()?;
    head.file.sync_all()?;
    head.synced = head.end;
    Ok((head, places))
}
