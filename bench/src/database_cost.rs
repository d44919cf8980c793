//! What a load costs a PostgreSQL: the processor time of all its processes, and the bytes of its log.

use std::fs;

use crate::postgres_server::PostgresServer;

/// The totals of a PostgreSQL since its start.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseCost {
    /// User and system time of all processes, those that ended included, in seconds.
    pub cpu_s: f64,
    /// Bytes that were written to the write-ahead log.
    pub log_bytes: f64,
}

impl DatabaseCost {
    /// Reads the totals of a server that runs, with those of its ended processes.
    ///
    /// # Errors
    ///
    /// If the server does not answer, or `/proc` cannot be parsed.
    pub fn of(server: &PostgresServer) -> Result<Self, String> {
        let log_bytes = server.number("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn", "postgres")?;
        let ticks = ticks_with_children(server.pid()).ok_or("/proc has an unknown format")?;
        Ok(Self { cpu_s: ticks as f64 / rustix::param::clock_ticks_per_second() as f64, log_bytes })
    }

    /// Returns the difference to an earlier reading.
    pub fn since(self, then: Self) -> Self {
        Self { cpu_s: self.cpu_s - then.cpu_s, log_bytes: self.log_bytes - then.log_bytes }
    }
}

/// Processor time of a process, of its children that run, and of those that ended.
fn ticks_with_children(pid: u32) -> Option<u64> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let running = children.split_whitespace().filter_map(|child| {
        // A child may end meanwhile.
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        Some(ticks(&stat)?.0)
    });
    let (own, ended) = ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    Some(own + ended + running.sum::<u64>())
}

/// The time of the process, and of its children that ended, in `/proc/PID/stat`.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let [user, system, ended_user, ended_system] = fields[..] else { return None };
    Some((user + system, ended_user + ended_system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_ended_children_is_counted_apart() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 99 0 0 0 250 50 30 4 20 0 4 0 100 1 1";
        assert_eq!(ticks(stat), Some((300, 34)));
        assert!(ticks_with_children(std::process::id()).is_some());
    }
}
