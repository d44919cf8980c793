//! The computer that a run was measured on.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::cores::Cores;

const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// The properties of the computer that figures depend on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Number of processors of the computer.
    pub cpus: usize,
    /// Version of the Linux kernel.
    pub kernel: String,
    /// Which processors ran the measured programs and the generator.
    pub pinning: String,
}

impl Machine {
    /// Describes this computer from the files in `/proc`.
    pub fn describe(cores: Cores) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: model.map_or("unknown", |(_, name)| name.trim()).to_owned(),
            cpus: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            kernel: kernel.trim().to_owned(),
            pinning: cores.describe(),
        }
    }
}

/// Rejects a directory in memory, where a sync costs nothing.
///
/// # Errors
///
/// If the directory is in memory or cannot be checked.
pub fn require_disk(folder: &Path) -> Result<(), String> {
    let found = rustix::fs::statfs(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&found.f_type) {
        return Err(format!("{} is in memory; name a folder on a disk with --data", folder.display()));
    }
    Ok(())
}

/// The current time in UTC: `2026-01-31T23:59:59Z`.
pub fn now_utc() -> String {
    format!("{:.0}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_disk() {
        require_disk(Path::new("/nonexistent")).unwrap_err();
        if Path::new("/dev/shm").is_dir() {
            require_disk(Path::new("/dev/shm")).unwrap_err();
        }
    }
}
