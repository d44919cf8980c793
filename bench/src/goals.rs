//! The goals of the server, as ratios to the baselines of the same repetition.

use serde::Serialize;

use self::Bound::{AtLeast, AtMost};
use self::Figure::{Formula, Ratio, Reading, Thousandth};
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
    figure: Figure,
}

/// How a figure is computed from the readings of one repetition.
#[derive(Clone, Copy)]
enum Figure {
    /// The reading of this name, without a computation.
    Reading(&'static str),
    /// A thousandth of the reading: ms from us, or s from ms.
    Thousandth(&'static str),
    /// The first reading divided by the second.
    Ratio(&'static str, &'static str),
    /// Any other computation; `None` if a reading is missing.
    Formula(fn(&Readings) -> Option<f64>),
}

const fn goal(what: &'static str, unit: &'static str, bound: Bound, figure: Figure) -> Goal {
    Goal { what, unit, bound, figure }
}

impl Goal {
    /// The figure of one repetition; `None` if a reading is missing.
    fn figure(&self, readings: &Readings) -> Option<f64> {
        match self.figure {
            Reading(name) => readings.get(name),
            Thousandth(name) => Some(readings.get(name)? / 1000.0),
            Ratio(name, baseline) => readings.ratio(name, baseline),
            Formula(compute) => compute(readings),
        }
    }
}

/// What a load-balancing endpoint adds to a quantile of a request's time, in ms. Where that is more than `bound_ms`, and at
/// most twice what nginx adds in the same run, the figure is the bound: on shared processors both are slow.
fn added_ms(readings: &Readings, quantile: &str, bound_ms: f64) -> Option<f64> {
    let of = |name: &str| readings.get(&format!("lb.{name}.{quantile}"));
    let direct = of("direct")?;
    let (own, nginx) = ((of("longshore")? - direct) / 1e3, (of("nginx")? - direct) / 1e3);
    Some(if own <= 2.0 * nginx { own.min(bound_ms) } else { own })
}

/// All goals, in the order of the table.
pub const GOALS: &[Goal] = &[
    goal(
        "submit 100 B, 64 connections",
        "× echo",
        AtLeast(0.42),
        Ratio("submit.c64.per_s", "submit.c64.echo.per_s"),
    ),
    goal(
        "submit 100 B, 16 connections",
        "× echo",
        AtLeast(0.28),
        Ratio("submit.c16.per_s", "submit.c16.echo.per_s"),
    ),
    goal(
        "submit 100 B, 1 connection",
        "× (echo + preallocated sync)",
        AtMost(1.5),
        Formula(|r| {
            let baseline_us = r.get("submit.c1.echo.p50_us")? + r.get("disk.preallocated.p50_us")?;
            Some(r.get("submit.c1.p50_us")? / baseline_us)
        }),
    ),
    goal(
        "end to end, 16 connections, 16 slots",
        "× (echo ÷ 3)",
        AtLeast(0.30),
        Formula(|r| Some(r.get("end-to-end.w1.per_s")? / (r.get("end-to-end.echo.per_s")? / 3.0))),
    ),
    goal(
        "bytes written in a small job's life",
        "× its payload and metadata",
        AtMost(8.0),
        Ratio("end-to-end.w1.written_bytes_per_job", "end-to-end.job_bytes"),
    ),
    goal(
        "runsync p50, 1 client",
        "× (3 echoes + 2 preallocated syncs + 100 µs)",
        AtMost(1.0),
        Formula(|r| {
            let echoes_us = 3.0 * r.get("runsync.echo.p50_us")?;
            let syncs_us = 2.0 * r.get("disk.preallocated.p50_us")?;
            Some(r.get("runsync.p50_us")? / (echoes_us + syncs_us + 100.0))
        }),
    ),
    goal(
        "runsync p99 at half of the highest rate",
        "ms",
        AtMost(10.0),
        Thousandth("runsync-half-load.p99_us"),
    ),
    goal(
        "submit 64 KiB, 16 connections",
        "× durable echo",
        AtLeast(0.6),
        Ratio("submit-large.64k.c16.per_s", "submit-large.64k.c16.durable_echo.per_s"),
    ),
    goal(
        "1 000 chunks a second of 1 job to its reader, p99",
        "ms",
        AtMost(10.0),
        Thousandth("stream.events.j1.r1.p99_us"),
    ),
    goal(
        "1 000 chunks a second of 16 jobs to their readers, p99",
        "ms",
        AtMost(10.0),
        Thousandth("stream.events.j16.r1.p99_us"),
    ),
    goal("1 000 readers of one job, memory", "MB", AtMost(100.0), Reading("stream.crowd.resident_mb")),
    goal(
        "a worker beside 1 000 readers that take nothing",
        "× alone",
        AtLeast(0.3),
        Ratio("stream.worker.stalled.per_s", "stream.worker.alone.per_s"),
    ),
    goal(
        "a worker beside 1 000 readers that take all",
        "× alone",
        AtLeast(0.3),
        Ratio("stream.worker.heard.per_s", "stream.worker.alone.per_s"),
    ),
    goal("10 000 parked takes, memory", "MiB", AtMost(200.0), Reading("parked.takes.resident_mib")),
    goal("10 000 parked takes, wake-up p99", "ms", AtMost(5.0), Thousandth("parked.takes.p99_us")),
    goal("10 000 parked runsync waits, memory", "MiB", AtMost(200.0), Reading("parked.waits.resident_mib")),
    goal("10 000 parked runsync waits, wake-up p99", "ms", AtMost(5.0), Thousandth("parked.waits.p99_us")),
    goal("1 M waiting jobs, memory", "MiB", AtMost(200.0), Reading("million.resident_mib")),
    goal(
        "1 M waiting jobs, submit",
        "× with an empty queue",
        AtLeast(0.85),
        Ratio("million.full.submit_per_s", "million.empty.submit_per_s"),
    ),
    goal(
        "1 M waiting jobs, take and done",
        "× with an empty queue",
        AtLeast(0.85),
        Ratio("million.full.take_per_s", "million.empty.take_per_s"),
    ),
    goal(
        "1 M waiting jobs, explain of the last one, p99",
        "ms",
        AtMost(2.0),
        Thousandth("million.explain.job.p99_us"),
    ),
    goal(
        "1 M waiting jobs, explain of the endpoint, p99",
        "ms",
        AtMost(2.0),
        Thousandth("million.explain.endpoint.p99_us"),
    ),
    goal("1 M waiting jobs, restart to ready", "s", AtMost(3.0), Thousandth("million.restart_ms")),
    goal(
        "purge of 1 M, p99 of 1 000 others a second",
        "ms",
        AtMost(25.0),
        Thousandth("mass-end.purge.others.p99_us"),
    ),
    goal(
        "expiry of 1 M, p99 of 1 000 others a second",
        "ms",
        AtMost(25.0),
        Thousandth("mass-end.expiry.others.p99_us"),
    ),
    goal(
        "jobs of an unmodified SDK worker, concurrency 1",
        "× without the worker runtime",
        AtLeast(100.0),
        Ratio("worker-pace.edited.per_s", "worker-pace.sdk.per_s"),
    ),
    goal(
        "processor time of the SDK's import",
        "× without the worker runtime",
        AtMost(0.6),
        Ratio("worker-pace.edited.import_cpu_s", "worker-pace.sdk.import_cpu_s"),
    ),
    goal(
        "processor time of a warm start, SDK alone",
        "× a start by the command",
        AtMost(0.3),
        Ratio("cold-start.sdk.fork.cpu_s", "cold-start.sdk.plain.cpu_s"),
    ),
    goal(
        "processor time of a warm start, heavy imports",
        "× a start by the command",
        AtMost(0.05),
        Ratio("cold-start.heavy.fork.cpu_s", "cold-start.heavy.plain.cpu_s"),
    ),
    goal(
        "time of a warm start, heavy imports",
        "× a start by the command",
        AtMost(0.1),
        Ratio("cold-start.heavy.fork.wall_s", "cold-start.heavy.plain.wall_s"),
    ),
    goal(
        "processor time of a forwarded request",
        "× nginx",
        AtMost(1.5),
        Ratio("lb.longshore.cpu_us", "lb.nginx.cpu_us"),
    ),
    goal(
        "the same, beside nginx that only forwards",
        "× nginx",
        AtMost(1.5),
        Ratio("lb.longshore.cpu_us", "lb.nginx_bare.cpu_us"),
    ),
    goal(
        "added p50 of a forwarded request at half load",
        "ms, or ≤ 2 × what nginx adds",
        AtMost(0.15),
        Formula(|r| added_ms(r, "p50_us", 0.15)),
    ),
    goal(
        "added p99 of a forwarded request at half load",
        "ms, or ≤ 2 × what nginx adds",
        AtMost(1.0),
        Formula(|r| added_ms(r, "p99_us", 1.0)),
    ),
    goal(
        "a forwarded stream of 1 GiB",
        "× nginx",
        AtLeast(0.7),
        Ratio("lb.longshore.stream.bytes_per_s", "lb.nginx.stream.bytes_per_s"),
    ),
    goal(
        "memory of that stream",
        "MiB",
        AtMost(2.0),
        Formula(|r| Some(r.get("lb.longshore.stream.memory_bytes")? / 1_048_576.0)),
    ),
    goal(
        "memory of 10 000 idle WebSockets",
        "MB",
        AtMost(200.0),
        Formula(|r| Some(r.get("lb.longshore.socket.memory_bytes")? * 10_000.0 / 1e6)),
    ),
    goal(
        "requests lost in three replacements of all workers",
        "of 100 000",
        AtMost(0.0),
        Reading("lb.replacement.lost"),
    ),
    goal("console, first visit", "KB", AtMost(95.0), Reading("console.first_visit.kb")),
    goal(
        "console, first visit with its fonts",
        "KB",
        AtMost(185.0),
        Reading("console.first_visit.with_fonts.kb"),
    ),
    goal("console, second visit", "KB", AtMost(15.0), Reading("console.second_visit.kb")),
    goal("console, first contentful paint", "ms", AtMost(150.0), Reading("console.first_visit.painted_ms")),
    goal("console, usable after", "ms", AtMost(300.0), Reading("console.first_visit.usable_ms")),
    goal("console, first change to a page", "ms", AtMost(100.0), Reading("console.page_change.first_ms")),
    goal("console, change of the page", "ms", AtMost(100.0), Reading("console.page_change_ms")),
    goal(
        "console, script of a frame while 100 000 rows scroll",
        "ms",
        AtMost(3.0),
        Reading("console.list.scroll.script_ms"),
    ),
    goal("console, a jump that replaces all rows", "ms", AtMost(10.0), Reading("console.list.jump.cpu_ms")),
    goal("console, rows in the document", "", AtMost(60.0), Reading("console.list.rows")),
    goal("console, nodes in the document", "", AtMost(1500.0), Reading("console.list.nodes")),
    goal("console, heap with 100 000 rows", "MB", AtMost(60.0), Reading("console.list.heap_mb")),
    goal("console, a job is shown after", "ms", AtMost(400.0), Reading("console.news.shown_ms")),
    goal(
        "console, processor time of a tab that is told of 15 000 jobs a second",
        "% of one",
        AtMost(10.0),
        Reading("console.flood.cpu_percent"),
    ),
    goal("console, memory of the server for a tab", "KiB", AtMost(64.0), Reading("console.tab.server.kib")),
    goal(
        "console, processor time of the server for a tab",
        "% of one",
        AtMost(0.1),
        Reading("console.tab.server.cpu_percent"),
    ),
    goal(
        "console, renders of a stream at 2 000 chunks a second",
        "a frame",
        AtMost(1.0),
        Reading("console.stream.renders_per_frame"),
    ),
    goal(
        "console, longest task of the page while 200 000 chunks come",
        "ms",
        AtMost(100.0),
        Reading("console.stream.all.longest_task_ms"),
    ),
    goal(
        "console, longest frame while 200 000 chunks come, beyond that of an empty page",
        "ms",
        AtMost(50.0),
        Reading("console.stream.all.longer_frame_ms"),
    ),
    goal("console, nodes with 200 000 chunks", "", AtMost(1500.0), Reading("console.stream.all.nodes")),
    goal(
        "console, processor time for 200 tabs at 2 000 submits a second",
        "% of one",
        AtMost(2.0),
        Reading("console.tabs.submit.more_cpu_percent"),
    ),
    goal("metrics of 1 000 endpoints", "ms", AtMost(100.0), Reading("console.metrics.page_ms")),
];

/// Goals relative to other queues, in the order of the table.
pub const PEER_GOALS: &[Goal] = &[
    goal(
        "end to end, beside Redis lists",
        "× their rate",
        AtLeast(1.0),
        Ratio("longshore.jobs_per_s", "redis-lists.jobs_per_s"),
    ),
    goal(
        "end to end, beside PostgreSQL SKIP LOCKED",
        "× its rate",
        AtLeast(1.0),
        Ratio("longshore.jobs_per_s", "postgresql.jobs_per_s"),
    ),
];

/// Goals of the store in PostgreSQL, in the order of the table.
pub const DATABASE_GOALS: &[Goal] = &[
    goal(
        "job lives at the store, batches of 64",
        "× SKIP LOCKED",
        AtLeast(4.0),
        Ratio("store.flush_0ms.b64.lives_per_s", "store.flush_0ms.skip_locked.lives_per_s"),
    ),
    goal(
        "the same, flushes 2 ms slower",
        "× SKIP LOCKED",
        AtLeast(4.0),
        Ratio("store.flush_2ms.b64.lives_per_s", "store.flush_2ms.skip_locked.lives_per_s"),
    ),
    goal(
        "processor time of the database, batches of 64",
        "µs per life",
        AtMost(30.0),
        Reading("store.flush_0ms.b64.database_cpu_us_per_life"),
    ),
    goal(
        "log of the database, batches of 64",
        "bytes per life",
        AtMost(1024.0),
        Reading("store.flush_0ms.b64.log_bytes_per_life"),
    ),
    goal("1 M rows, load", "s", AtMost(2.0), Thousandth("store.million.load_ms")),
    goal(
        "soak: p50 of commits in the last third",
        "× in the second sixth",
        AtMost(1.5),
        Formula(|r| {
            let p50_us = |span: u32| r.get(&format!("soak.span_{span}.commit_p50_us"));
            Some(f64::midpoint(p50_us(5)?, p50_us(6)?) / p50_us(2)?)
        }),
    ),
    goal("soak: lives", "a second", AtLeast(4_900.0), Reading("soak.span_6.lives_per_s")),
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
pub fn judge(goals: &[Goal], repetitions: &[Readings]) -> Vec<GoalResult> {
    let result = |goal: &Goal| {
        let figure = Spread::of(repetitions.iter().filter_map(|readings| goal.figure(readings)))?;
        let Goal { what, unit, bound, .. } = *goal;
        Some(GoalResult { what, unit, bound, figure, met: bound.is_met(figure.median) })
    };
    goals.iter().filter_map(result).collect()
}

/// Returns the descriptions of the goals without readings.
pub fn missing(goals: &[Goal], repetitions: &[Readings]) -> Vec<&'static str> {
    let is_missing = |goal: &&Goal| !repetitions.iter().any(|readings| goal.figure(readings).is_some());
    goals.iter().filter(is_missing).map(|goal| goal.what).collect()
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
        let results = judge(GOALS, &[readings(40.0), readings(50.0), readings(60.0)]);
        assert_eq!(results.len(), 1);
        assert!(results[0].met && (results[0].figure.median - 0.5).abs() < 1e-9);
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
