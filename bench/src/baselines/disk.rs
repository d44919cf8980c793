//! The baseline of durability: one synced write of 4 KiB.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::load::Times;

const WRITE_BYTES: usize = 4096;
/// Length of the preallocated file. Writes wrap around in it, as in a log that reuses its files.
pub(super) const PREALLOCATED_BYTES: u64 = 16 << 20;

/// The kind of write that is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The file grows, so each sync also writes its length.
    Append,
    /// The file's blocks were written before, so a sync writes only the data.
    Preallocated,
}

/// Writes and syncs 4 KiB in a file in `folder` repeatedly for `span`. Returns the time of each.
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

/// Returns a file whose blocks are all written. The first sync of an unwritten block would also update metadata.
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
