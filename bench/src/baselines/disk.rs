//! The floor of durability: one write of 4 KiB made durable.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::load::Times;

const WRITE_BYTES: usize = 4096;
/// Who writes goes round in it, as in a log whose files are used again.
pub(super) const PREALLOCATED_BYTES: u64 = 16 << 20;

/// What each sync has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The file has grown, so its length is written too.
    Append,
    /// The file was there, written full; only the bytes are new.
    Preallocated,
}

/// Writes and syncs in a file of this folder for a while.
pub fn measure(folder: &Path, kind: Sync, span: Duration) -> Result<Times, String> {
    run(folder, kind, span)
        .map_err(|error| format!("cannot measure the disk in {}: {error}", folder.display()))
}

fn run(folder: &Path, kind: Sync, span: Duration) -> std::io::Result<Times> {
    let file = match kind {
        Sync::Append => tempfile::tempfile_in(folder)?,
        Sync::Preallocated => preallocated(folder)?,
    };
    let (block, mut times, mut at) = ([0x5a; WRITE_BYTES], Times::new(), 0);
    let ends = Instant::now() + span;
    while Instant::now() < ends {
        let began = Instant::now();
        file.write_all_at(&block, at)?;
        file.sync_data()?;
        times.add(began.elapsed());
        at += WRITE_BYTES as u64;
        if kind == Sync::Preallocated && at >= PREALLOCATED_BYTES {
            at = 0;
        }
    }
    Ok(times)
}

/// A file that is written full: blocks that never were would have to be marked as written by the first sync of each.
pub(super) fn preallocated(folder: &Path) -> std::io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    let block = vec![0; 1 << 20];
    for at in (0..PREALLOCATED_BYTES).step_by(block.len()) {
        file.write_all_at(&block, at)?;
    }
    file.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sync_are_timed() {
        let folder = tempfile::tempdir().unwrap();
        for kind in [Sync::Append, Sync::Preallocated] {
            let times = measure(folder.path(), kind, Duration::from_millis(5)).unwrap();
            assert!(times.count() > 0, "{kind:?}");
        }
        assert!(measure(Path::new("/nonexistent"), Sync::Append, Duration::ZERO).is_err());
    }
}
