//! Metrics of the process from the operating system.

use std::fs;

/// Metrics of the process. `None` where the system does not report the value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessNumbers {
    pub resident_bytes: Option<u64>,
    pub open_files: Option<usize>,
}

/// Reads the metrics from `/proc` on Linux. On other systems every value is `None`.
pub(super) fn read() -> ProcessNumbers {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ProcessNumbers {
        resident_bytes: resident_bytes(&status),
        open_files: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_memory_is_read_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\nVmData: 1 kB\n"), Some(2_097_152));
        for odd in ["", "VmRSS:", "VmRSS: x kB", "VmRSS: 1 MB", "VmRSS: 18446744073709551615 kB"] {
            assert_eq!(resident_bytes(odd), None, "{odd}");
        }
    }
}
