//! Metrics of the process from the operating system, under the names of Prometheus' own client libraries.

use std::fs;

/// The clock ticks in a second that `/proc` counts in: 100 on every architecture that Linux supports today.
const TICKS_PER_SECOND: f64 = 100.0;

/// A number that the operating system reports about the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProcessMetric {
    /// The name, such as `process_open_fds`.
    pub(crate) name: &'static str,
    /// Whether the number only goes up.
    pub(crate) is_counter: bool,
    /// What the number is.
    pub(crate) help: &'static str,
    pub(crate) value: f64,
}

/// The metric with this name, a whole number; `None` if the system does not report it.
pub(crate) fn count_of(name: &str) -> Option<u64> {
    read().into_iter().find(|metric| metric.name == name).map(|metric| metric.value as u64)
}

/// Reads the metrics from `/proc` on Linux. A value that the system does not report is left out.
pub(crate) fn read() -> Vec<ProcessMetric> {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (status, limits) = (file("/proc/self/status"), file("/proc/self/limits"));
    let (own, machine) = (file("/proc/self/stat"), file("/proc/stat"));
    let open_files = fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as f64);
    let metrics = [
        ("process_resident_memory_bytes", false, "resident memory", resident_bytes(&status)),
        ("process_open_fds", false, "open file descriptors", open_files),
        ("process_max_fds", false, "most open file descriptors", max_files(&limits)),
        ("process_cpu_seconds_total", true, "processor time", cpu_seconds(&own)),
        (
            "process_start_time_seconds",
            false,
            "when the process started, in seconds since 1970",
            start_time(&own, &machine),
        ),
    ];
    let known = metrics.into_iter().filter_map(|(name, is_counter, help, value)| {
        Some(ProcessMetric { name, is_counter, help, value: value? })
    });
    known.collect()
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024.0)
}

/// The soft limit of `Max open files`; `None` if it is `unlimited`.
fn max_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The number in field `number` of `/proc/PID/stat`, counted from 1 as proc(5) does. The name of the program, field 2, may
/// have blanks.
fn stat_field(stat: &str, number: usize) -> Option<f64> {
    let after_name = stat.rsplit_once(") ")?.1;
    after_name.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((stat_field(stat, 14)? + stat_field(stat, 15)?) / TICKS_PER_SECOND)
}

fn start_time(stat: &str, machine: &str) -> Option<f64> {
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(booted.trim().parse::<f64>().ok()? + stat_field(stat, 22)? / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_memory_is_read_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\nVmData: 1 kB\n"), Some(2_097_152.0));
        for odd in ["", "VmRSS:", "VmRSS: x kB", "VmRSS: 1 MB"] {
            assert_eq!(resident_bytes(odd), None, "{odd}");
        }
    }

    #[test]
    fn times_are_read_after_a_name_with_blanks_and_brackets() {
        let fields: Vec<String> = (4..=24).map(|number| (number * 100).to_string()).collect();
        let stat = format!("7 (a ) b) S {}", fields.join(" "));
        assert_eq!(cpu_seconds(&stat), Some(29.0));
        assert_eq!(start_time(&stat, "cpu 1\nbtime 1000\n"), Some(1_022.0));
        assert_eq!((cpu_seconds("7 (a) S 1"), start_time("", "btime x")), (None, None));
    }

    #[test]
    fn the_limit_of_files_is_the_soft_one() {
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024     4096    files\n";
        assert_eq!(max_files(limits), Some(1_024.0));
        assert_eq!(max_files("Max open files  unlimited unlimited files\n"), None);
    }

    #[test]
    fn a_running_process_has_every_metric() {
        let names: Vec<&str> = read().into_iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(count_of("process_open_fds").is_some_and(|open| open > 0));
        assert_eq!(count_of("process_that_does_not_exist"), None);
    }
}
