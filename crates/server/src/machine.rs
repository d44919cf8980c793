//! What this computer has for workers.

use longshore_engine::Capacity;

const BYTES_PER_KIB: u64 = 1_024;

/// The memory and the processors of this computer; `None` where they are unknown.
pub(crate) fn capacity() -> Capacity {
    let facts = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let processors = std::thread::available_parallelism().ok();
    Capacity {
        memory_bytes: memory_bytes(&facts),
        vcpus: processors.map(|number| number.get() as f64),
        workers_max: None,
    }
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(BYTES_PER_KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_read_or_unknown() {
        assert_eq!(memory_bytes("MemFree: 1 kB\nMemTotal:    4 kB\n"), Some(4_096));
        for odd in ["", "MemTotal: x kB", "MemTotal: 4"] {
            assert_eq!(memory_bytes(odd), None);
        }
    }
}
