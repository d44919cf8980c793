//! Space that is kept on the disk of the data directory, so that a server on a full disk can start, show its jobs and
//! delete some: a deletion is a change, and needs space until the log is compacted.
//!
//! ```text
//! enough ── free space below LOW: the reserve is removed ──► short: no new job is accepted, none is handed out
//!        ◄── free space for the reserve and twice LOW: the reserve is made again ──
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longshore_engine::Engine;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use tokio::time::MissedTickBehavior;

/// The name of the file in the data directory.
pub(crate) const NAME: &str = "reserve";

/// Limits of the size of the reserve, in bytes. Between them it is the 64th part of the disk. The log allocates 1 MiB
/// ahead of its end at each start.
const BYTES_MIN: u64 = 8 << 20;
const BYTES_MAX: u64 = 32 << 20;
const PART: u64 = 64;

/// Interval between two looks at the free space.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The reserve of one data directory.
#[derive(Clone, Debug)]
pub(crate) struct Reserve {
    data_dir: PathBuf,
}

/// The space of the data directory's disk, in bytes.
struct Space {
    total: u64,
    free: u64,
}

impl Space {
    /// The size of the reserve on this disk.
    fn reserve(&self) -> u64 {
        (self.total / PART).clamp(BYTES_MIN, BYTES_MAX)
    }

    /// Free space below which the reserve is used.
    fn low(&self) -> u64 {
        self.reserve() / 4
    }
}

impl Reserve {
    /// The reserve in this data directory, which need not exist yet.
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    /// Makes the reserve, or uses it if the disk is full. Returns why the server is short of space; `None` if it is not,
    /// or if the free space is unknown.
    pub(crate) fn look(&self) -> Option<String> {
        let Ok(space) = self.space() else { return None };
        let is_short = if self.path().exists() {
            let is_low = space.free < space.low();
            if is_low {
                // One that cannot be removed keeps the server from nothing.
                let _ = fs::remove_file(self.path());
            }
            is_low
        } else {
            space.free < space.reserve() + 2 * space.low() || self.make(space.reserve()).is_err()
        };
        is_short.then(|| {
            let folder = self.data_dir.canonicalize().unwrap_or_else(|_| self.data_dir.clone());
            format!(
                "the disk of {}, mounted at {}, is full: no job is accepted and none is handed out until there is \
                 space. Free some on it, or delete jobs or endpoints",
                folder.display(),
                mount_point(&folder).display()
            )
        })
    }

    /// Uses the reserve if the disk is full, before the store is opened.
    pub(crate) fn use_if_full(&self) {
        if self.path().exists()
            && let Some(shortage) = self.look()
        {
            tracing::error!(%shortage, "starting on a full disk");
        }
    }

    fn space(&self) -> io::Result<Space> {
        let disk = statvfs(&self.data_dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Space { total: bytes(disk.f_blocks), free: bytes(disk.f_bavail) })
    }

    fn path(&self) -> PathBuf {
        self.data_dir.join(NAME)
    }

    /// Makes a file that takes `bytes` of the disk; removes it if that fails.
    fn make(&self, bytes: u64) -> io::Result<()> {
        let path = self.path();
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let made = fallocate(&file, FallocateFlags::empty(), 0, bytes).or_else(|_| {
            // Not every file system allocates on request.
            (0..bytes / 4_096).try_for_each(|_| (&file).write_all(&[1; 4_096]))
        });
        made.inspect_err(|_| drop(fs::remove_file(&path)))
    }
}

/// The highest folder above `folder` on the same disk; `folder` itself if nothing is known about it.
fn mount_point(folder: &Path) -> &Path {
    let disk = |path: &Path| fs::metadata(path).map(|facts| facts.dev()).ok();
    let of_folder = disk(folder);
    folder.ancestors().take_while(|path| disk(path) == of_folder).last().unwrap_or(folder)
}

/// Looks at the free space at intervals, and tells the engine.
pub(crate) async fn watch(reserve: Reserve, engine: Engine) {
    let mut interval = tokio::time::interval(LOOK_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let looked = reserve.clone();
        // A task that was not run changes nothing.
        let Ok(shortage) = tokio::task::spawn_blocking(move || looked.look()).await else { continue };
        engine.set_space_shortage(shortage).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_takes_space_of_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let reserve = Reserve::of(dir.path());
        assert_eq!(reserve.look(), None, "the disk of the tests has space");
        let size = fs::metadata(dir.path().join(NAME)).unwrap().len();
        assert_eq!(size, reserve.space().unwrap().reserve());
        assert_eq!(reserve.look(), None);
        assert_eq!(Reserve::of(&dir.path().join("missing")).look(), None);
    }

    #[test]
    fn the_mount_point_is_the_highest_folder_of_the_disk() {
        assert_eq!(mount_point(Path::new("/proc/self/task")), Path::new("/proc"));
        assert_eq!(mount_point(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn a_small_disk_has_a_small_reserve() {
        let reserve = |total| Space { total, free: 0 }.reserve();
        assert_eq!([reserve(1 << 20), reserve(1 << 30), reserve(1 << 40)], [BYTES_MIN, 16 << 20, BYTES_MAX]);
    }
}
