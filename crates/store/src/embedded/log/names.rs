//! The names of the log's files.

use std::ffi::OsStr;
use std::path::Path;
use std::{fs, io};

/// The file of a segment.
pub(in crate::embedded) fn segment(number: u64) -> String {
    format!("{number:010}.log")
}

/// The number of the segment with this name.
pub(in crate::embedded) fn number_of(name: &OsStr) -> Option<u64> {
    let number = name.to_str()?.strip_suffix(".log")?.parse().ok()?;
    // `+1.log` and `1.log` are no names of ours.
    (segment(number).as_str() == name).then_some(number)
}

/// A file that is no segment yet, or no more.
pub(in crate::embedded) fn spare(number: u64) -> String {
    format!("spare-{number}")
}

/// Whether it is such a file.
pub(in crate::embedded) fn is_spare(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("spare-"))
}

/// Whoever holds a shared lock of this file keeps every segment where it is.
pub(in crate::embedded) const COPY_LOCK: &str = "hold";

/// The folder of the segments.
pub(in crate::embedded) const LOG: &str = "log";

/// The file beside that folder that says how far the log goes.
pub(in crate::embedded) const END: &str = "log-end";

/// The numbers of the segments in the folder of a log, ascending; none where there is no such folder.
pub(in crate::embedded) fn numbers_in(log: &Path) -> io::Result<Vec<u64>> {
    let files = match fs::read_dir(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files?.collect::<io::Result<Vec<_>>>()?,
    };
    let mut numbers: Vec<u64> = files.iter().filter_map(|file| number_of(&file.file_name())).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
