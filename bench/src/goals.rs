//! The goals of the server, as ratios to the baselines of the same repetition.

use serde::Serialize;

use crate::readings::{Readings, Spread};

/// The bound that a figure must meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The figure must be at least this large.
    AtLeast(f64),
    /// The figure must be at most this large.
    AtMost(f64),
}

impl Bound {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    /// Returns the bound as text for a table: `≥ 0.5`.
    pub fn shown(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("≥ {bound}"),
            Self::AtMost(bound) => format!("≤ {bound}"),
        }
    }
}

/// A goal: a figure and its bound.
pub struct Goal {
    /// Short description for the table.
    pub what: &'static str,
    /// Unit of the figure, such as `× echo`.
    pub unit: &'static str,
    /// The bound that the figure must meet.
    pub bound: Bound,
    /// Computes the figure from the readings of one repetition; `None` if a reading is missing.
    pub figure: fn(&Readings) -> Option<f64>,
}

/// All goals, in the order of the table.
pub const GOALS: &[Goal] = &[
    Goal {
        what: "submit 100 B, 64 connections",
        unit: "× echo",
        bound: Bound::AtLeast(0.42),
        figure: |r| r.ratio("submit.c64.per_s", "submit.c64.echo.per_s"),
    },
    Goal {
        what: "submit 100 B, 16 connections",
        unit: "× echo",
        bound: Bound::AtLeast(0.28),
        figure: |r| r.ratio("submit.c16.per_s", "submit.c16.echo.per_s"),
    },
    Goal {
        what: "submit 100 B, 1 connection",
        unit: "× (echo + preallocated sync)",
        bound: Bound::AtMost(1.5),
        figure: |r| {
            let floor_us = r.get("submit.c1.echo.p50_us")? + r.get("disk.preallocated.p50_us")?;
            Some(r.get("submit.c1.p50_us")? / floor_us)
        },
    },
    Goal {
        what: "end to end, 16 connections, 16 slots",
        unit: "× (echo ÷ 3)",
        bound: Bound::AtLeast(0.30),
        figure: |r| Some(r.get("end-to-end.w1.per_s")? / (r.get("end-to-end.echo.per_s")? / 3.0)),
    },
    Goal {
        what: "bytes written in a small job's life",
        unit: "× its payload and metadata",
        bound: Bound::AtMost(8.0),
        figure: |r| r.ratio("end-to-end.w1.written_bytes_per_job", "end-to-end.job_bytes"),
    },
    Goal {
        what: "runsync p50, 1 client",
        unit: "× (3 echoes + 2 preallocated syncs + 100 µs)",
        bound: Bound::AtMost(1.0),
        figure: |r| {
            let echoes_us = 3.0 * r.get("runsync.echo.p50_us")?;
            let syncs_us = 2.0 * r.get("disk.preallocated.p50_us")?;
            Some(r.get("runsync.p50_us")? / (echoes_us + syncs_us + 100.0))
        },
    },
    Goal {
        what: "runsync p99 at half of the highest rate",
        unit: "ms",
        bound: Bound::AtMost(10.0),
        figure: |r| Some(r.get("runsync-half-load.p99_us")? / 1000.0),
    },
    Goal {
        what: "submit 64 KiB, 16 connections",
        unit: "× durable echo",
        bound: Bound::AtLeast(0.6),
        figure: |r| r.ratio("submit-large.64k.c16.per_s", "submit-large.64k.c16.durable_echo.per_s"),
    },
    Goal {
        what: "1 000 chunks a second of 1 job to its reader, p99",
        unit: "ms",
        bound: Bound::AtMost(10.0),
        figure: |r| Some(r.get("stream.events.j1.r1.p99_us")? / 1000.0),
    },
    Goal {
        what: "1 000 chunks a second of 16 jobs to their readers, p99",
        unit: "ms",
        bound: Bound::AtMost(10.0),
        figure: |r| Some(r.get("stream.events.j16.r1.p99_us")? / 1000.0),
    },
    Goal {
        what: "1 000 readers of one job, memory",
        unit: "MB",
        bound: Bound::AtMost(100.0),
        figure: |r| r.get("stream.crowd.resident_mb"),
    },
    Goal {
        what: "a worker beside 1 000 readers that take nothing",
        unit: "× alone",
        bound: Bound::AtLeast(0.3),
        figure: |r| r.ratio("stream.worker.stalled.per_s", "stream.worker.alone.per_s"),
    },
    Goal {
        what: "a worker beside 1 000 readers that take all",
        unit: "× alone",
        bound: Bound::AtLeast(0.3),
        figure: |r| r.ratio("stream.worker.heard.per_s", "stream.worker.alone.per_s"),
    },
    Goal {
        what: "10 000 parked takes, memory",
        unit: "MiB",
        bound: Bound::AtMost(200.0),
        figure: |r| r.get("parked.takes.resident_mib"),
    },
    Goal {
        what: "10 000 parked takes, wake-up p99",
        unit: "ms",
        bound: Bound::AtMost(5.0),
        figure: |r| Some(r.get("parked.takes.p99_us")? / 1000.0),
    },
    Goal {
        what: "10 000 parked runsync waits, memory",
        unit: "MiB",
        bound: Bound::AtMost(200.0),
        figure: |r| r.get("parked.waits.resident_mib"),
    },
    Goal {
        what: "10 000 parked runsync waits, wake-up p99",
        unit: "ms",
        bound: Bound::AtMost(5.0),
        figure: |r| Some(r.get("parked.waits.p99_us")? / 1000.0),
    },
    Goal {
        what: "1 M waiting jobs, memory",
        unit: "MiB",
        bound: Bound::AtMost(200.0),
        figure: |r| r.get("million.resident_mib"),
    },
    Goal {
        what: "1 M waiting jobs, submit",
        unit: "× with an empty queue",
        bound: Bound::AtLeast(0.85),
        figure: |r| r.ratio("million.full.submit_per_s", "million.empty.submit_per_s"),
    },
    Goal {
        what: "1 M waiting jobs, take and done",
        unit: "× with an empty queue",
        bound: Bound::AtLeast(0.85),
        figure: |r| r.ratio("million.full.take_per_s", "million.empty.take_per_s"),
    },
    Goal {
        what: "1 M waiting jobs, restart to ready",
        unit: "s",
        bound: Bound::AtMost(3.0),
        figure: |r| Some(r.get("million.restart_ms")? / 1000.0),
    },
    Goal {
        what: "purge of 1 M, p99 of 1 000 others a second",
        unit: "ms",
        bound: Bound::AtMost(25.0),
        figure: |r| Some(r.get("mass-end.purge.others.p99_us")? / 1000.0),
    },
    Goal {
        what: "expiry of 1 M, p99 of 1 000 others a second",
        unit: "ms",
        bound: Bound::AtMost(25.0),
        figure: |r| Some(r.get("mass-end.expiry.others.p99_us")? / 1000.0),
    },
];

/// Goals relative to other queues, in the order of the table.
pub const PEER_GOALS: &[Goal] = &[
    Goal {
        what: "end to end, beside Redis lists",
        unit: "× their rate",
        bound: Bound::AtLeast(1.0),
        figure: |r| r.ratio("longshore.jobs_per_s", "redis-lists.jobs_per_s"),
    },
    Goal {
        what: "end to end, beside PostgreSQL SKIP LOCKED",
        unit: "× its rate",
        bound: Bound::AtLeast(1.0),
        figure: |r| r.ratio("longshore.jobs_per_s", "postgresql.jobs_per_s"),
    },
];

/// A goal and the measured figure.
#[derive(Debug, Serialize)]
pub struct GoalResult {
    /// Short description for the table.
    pub what: &'static str,
    /// Unit of the figure.
    pub unit: &'static str,
    /// The bound that the figure must meet.
    pub bound: Bound,
    /// Minimum, median and maximum of the figure over the repetitions.
    pub figure: Spread,
    /// Whether the median meets the bound.
    pub met: bool,
}

/// Returns the results of all goals that have readings.
pub fn judge(targets: &[Goal], repetitions: &[Readings]) -> Vec<GoalResult> {
    let verdict = |target: &Goal| {
        let figure = Spread::of(repetitions.iter().filter_map(|readings| (target.figure)(readings)))?;
        let Goal { what, unit, bound, .. } = *target;
        Some(GoalResult { what, unit, bound, figure, met: bound.is_met(figure.median) })
    };
    targets.iter().filter_map(verdict).collect()
}

/// Returns the descriptions of the goals without readings.
pub fn missing(targets: &[Goal], repetitions: &[Readings]) -> Vec<&'static str> {
    let is_missing = |target: &&Goal| !repetitions.iter().any(|readings| (target.figure)(readings).is_some());
    targets.iter().filter(is_missing).map(|target| target.what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides() {
        let readings = |per_s| {
            let mut readings = Readings::default();
            readings.put("submit.c64.per_s", per_s);
            readings.put("submit.c64.echo.per_s", 100.0);
            readings
        };
        let verdicts = judge(GOALS, &[readings(40.0), readings(50.0), readings(60.0)]);
        assert_eq!(verdicts.len(), 1);
        assert!(verdicts[0].met && (verdicts[0].figure.median - 0.5).abs() < 1e-9);
        assert!(!judge(GOALS, &[readings(41.0)])[0].met);
        assert!(judge(GOALS, &[]).is_empty());
        assert_eq!(missing(GOALS, &[]).len(), GOALS.len());
        assert_eq!(missing(GOALS, &[readings(40.0)]).len(), GOALS.len() - 1);
    }

    #[test]
    fn bounds_have_a_side() {
        assert!(Bound::AtMost(1.5).is_met(1.5) && !Bound::AtMost(1.5).is_met(1.6));
        assert!(Bound::AtLeast(0.5).is_met(0.5) && !Bound::AtLeast(0.5).is_met(0.4));
        assert_eq!(Bound::AtMost(1.5).shown(), "≤ 1.5");
    }
}
