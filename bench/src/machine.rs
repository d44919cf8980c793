//! What a run was measured on.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::cores::Cores;

const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// The machine, as far as figures depend on it.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: String,
    /// How many there are.
    pub cpus: usize,
    /// The kernel.
    pub kernel: String,
    /// What runs where.
    pub pinning: String,
}

impl Machine {
    /// This one.
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

/// Refuses a folder that is not on a disk: a sync there would cost nothing.
pub fn require_disk(folder: &Path) -> Result<(), String> {
    let found = rustix::fs::statfs(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&found.f_type) {
        return Err(format!("{} is in memory; name a folder on a disk with --data", folder.display()));
    }
    Ok(())
}

/// The time in UTC, as `2026-01-31T23:59:59Z`.
pub fn now_utc() -> String {
    utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

fn utc(seconds: u64) -> String {
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date so many days after the first of 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn memory_is_no_disk() {
        require_disk(Path::new("/nonexistent")).unwrap_err();
        if Path::new("/dev/shm").is_dir() {
            require_disk(Path::new("/dev/shm")).unwrap_err();
        }
    }
}
