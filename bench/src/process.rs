//! Resources that a process has used, as the kernel counts them.

use std::fs;

/// Processor time, writes and memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// User and system time in seconds.
    pub cpu_s: f64,
    /// Bytes that the process caused to be written to disks.
    pub written_bytes: f64,
    /// Resident memory in bytes.
    pub resident_bytes: f64,
}

impl ProcessUsage {
    /// Reads the totals of a process since its start.
    ///
    /// # Errors
    ///
    /// If the process has ended or `/proc` cannot be parsed.
    pub fn by(pid: u32) -> Result<Self, String> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))
        };
        let unclear = |name: &str| format!("/proc/{pid}/{name} has an unknown format");
        Ok(Self {
            cpu_s: ticks(&read("stat")?).ok_or_else(|| unclear("stat"))? as f64
                / rustix::param::clock_ticks_per_second() as f64,
            written_bytes: field(&read("io")?, "write_bytes:").ok_or_else(|| unclear("io"))? as f64,
            resident_bytes: field(&read("status")?, "VmRSS:").ok_or_else(|| unclear("status"))? as f64
                * 1024.0,
        })
    }

    /// Returns the difference to an earlier reading. Memory is the current value.
    pub fn since(self, then: Self) -> Self {
        Self {
            cpu_s: self.cpu_s - then.cpu_s,
            written_bytes: self.written_bytes - then.written_bytes,
            resident_bytes: self.resident_bytes,
        }
    }
}

/// User and system time in `/proc/PID/stat`. The program's name before them may contain spaces and parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_understood() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 99 0 0 0 250 50 0 0 20 0 4 0 100 1 1";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(field("Name:\tx\nVmRSS:\t  123 kB\n", "VmRSS:"), Some(123));
        assert_eq!(field("", "VmRSS:"), None);
        let me = ProcessUsage::by(std::process::id()).unwrap();
        assert!(me.resident_bytes > 0.0);
        assert!(ProcessUsage::by(u32::MAX).is_err());
    }
}
