//! The names of the log's files.

use std::ffi::OsStr;
use std::path::Path;
use std::{fs, io};

/// Returns the file name of a segment.
pub(in crate::embedded) fn segment(number: u64) -> String {
    format!("{number:010}.log")
}

/// Returns the number of the segment with this file name; `None` if it is no segment's.
pub(in crate::embedded) fn number_of(name: &OsStr) -> Option<u64> {
    let number = name.to_str()?.strip_suffix(".log")?.parse().ok()?;
    // Only the ten-digit spelling is a segment: not `+1.log`, not `1.log`.
    (segment(number).as_str() == name).then_some(number)
}

/// Returns the file name of a spare: a file kept for the next segment.
pub(in crate::embedded) fn spare(number: u64) -> String {
    format!("spare-{number}")
}

/// Whether this is the file name of a spare.
pub(in crate::embedded) fn is_spare(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("spare-"))
}

/// The file in the log's directory whose shared lock keeps the server from removing segments.
pub(in crate::embedded) const COPY_LOCK: &str = "hold";

/// The directory of the segments in a data directory.
pub(in crate::embedded) const LOG: &str = "log";

/// The file in a data directory that notes the end of the log.
pub(in crate::embedded) const END: &str = "log-end";

/// Returns the numbers of the segments in the directory `log`, ascending; empty if there is no such directory.
pub(in crate::embedded) fn numbers_in(log: &Path) -> io::Result<Vec<u64>> {
    let files = match fs::read_dir(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files?.collect::<io::Result<Vec<_>>>()?,
    };
    let mut numbers: Vec<u64> = files.iter().filter_map(|file| number_of(&file.file_name())).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
