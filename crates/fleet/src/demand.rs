//! The number of workers that the load needs.

use crate::{Scaler, ScalingRules};

/// The jobs of an endpoint that its fleet has to serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetLoad {
    /// Queued jobs that may cause a worker to start: all but those of low priority.
    pub queued_normal: u64,
    /// Jobs that a worker runs, of any priority.
    pub running: u64,
    /// How long the oldest queued normal job has waited, in ms.
    pub oldest_normal_wait_ms: u64,
}

/// The number of workers that the load needs. Neither number is above `workers_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Workers are started until there are this many.
    pub grow_to: u32,
    /// Idle workers are stopped only while there are more than this many.
    pub keep: u32,
    /// Time in ms after which an unchanged load needs more workers; `None`: never.
    pub grows_in_ms: Option<u64>,
}

/// The number of workers that the load needs. `up` workers have sent a take, `starting` workers have not.
pub fn demand(rules: &ScalingRules, load: &FleetLoad, up: u32, starting: u32) -> Demand {
    let (grow_to, keep, grows_in_ms) = match rules.scaler {
        Scaler::QueueDelay { ms } => by_delay(ms, rules.max_concurrency.max(1), load, up, starting),
        Scaler::RequestCount { jobs } => by_count(jobs.max(1), load, rules.is_balanced),
    };
    let bounded = |workers: u64| {
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        workers.max(rules.workers_min).min(rules.workers_max)
    };
    let (grow_to, keep) = (bounded(grow_to), bounded(keep));
    debug_assert!(grow_to.max(keep) <= rules.workers_max, "the maximum of workers bounds every demand");
    Demand { grow_to, keep, grows_in_ms: grows_in_ms.filter(|_| grow_to < rules.workers_max) }
}

/// One more worker for every `span_ms` that the oldest job has waited, and one immediately if none is up. At most as many
/// workers are starting as the queued jobs can use.
fn by_delay(
    span_ms: u64,
    jobs_each: u64,
    load: &FleetLoad,
    up: u32,
    starting: u32,
) -> (u64, u64, Option<u64>) {
    if load.queued_normal == 0 {
        return (0, 0, None);
    }
    let useful = load.queued_normal.div_ceil(jobs_each);
    let spans = load.oldest_normal_wait_ms.checked_div(span_ms).unwrap_or(useful);
    let due = spans.saturating_add(u64::from(up == 0));
    let workers = u64::from(up) + useful.min(due).max(u64::from(starting));
    let next_ms = (spans + 1).saturating_mul(span_ms).saturating_sub(load.oldest_normal_wait_ms);
    (workers, workers, (due < useful).then_some(next_ms))
}

/// One worker for every `jobs_each` jobs. Running jobs alone start no worker: they have one, and they may be of low
/// priority. Outstanding requests do: if workers have no limit, no request ever waits.
fn by_count(jobs_each: u64, load: &FleetLoad, is_balanced: bool) -> (u64, u64, Option<u64>) {
    let workers = load.queued_normal.saturating_add(load.running).div_ceil(jobs_each);
    (if load.queued_normal > 0 || is_balanced { workers } else { 0 }, workers, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::String};
    use core::fmt::Write;
    use expect_test::expect;

    const DELAY: ScalingRules = ScalingRules {
        workers_min: 0,
        workers_max: 5,
        idle_timeout_ms: 5_000,
        idle_timeout_ms_max: None,
        scaler: Scaler::QueueDelay { ms: 4_000 },
        max_concurrency: 1,
        version: 1,
        is_balanced: false,
    };

    /// One line per row: queued, running, wait in ms, up, starting → the demand.
    fn table(rules: &ScalingRules, rows: &[(u64, u64, u64, u32, u32)]) -> String {
        let mut text = String::new();
        for &(queued_normal, running, oldest_normal_wait_ms, up, starting) in rows {
            let d = demand(rules, &FleetLoad { queued_normal, running, oldest_normal_wait_ms }, up, starting);
            let next = d.grows_in_ms.map_or(String::new(), |ms| format!(", more in {ms} ms"));
            writeln!(
                text,
                "queued {queued_normal} running {running} wait {oldest_normal_wait_ms} up {up} starting {starting} \
                 -> grow to {} keep {}{next}",
                d.grow_to, d.keep
            )
            .unwrap();
        }
        text
    }

    #[test]
    fn the_queue_delay_grows_the_fleet() {
        let rows = [
            (0, 0, 0, 0, 0),
            (1, 0, 0, 0, 0),
            (1, 0, 9_000, 0, 1),
            (9, 0, 0, 0, 1),
            (9, 0, 4_000, 0, 1),
            (9, 1, 3_999, 1, 0),
            (9, 1, 4_000, 1, 0),
            (9, 1, 8_000, 1, 1),
            (9, 5, 60_000, 5, 0),
            (0, 3, 0, 3, 0),
        ];
        expect![[r#"
            queued 0 running 0 wait 0 up 0 starting 0 -> grow to 0 keep 0
            queued 1 running 0 wait 0 up 0 starting 0 -> grow to 1 keep 1
            queued 1 running 0 wait 9000 up 0 starting 1 -> grow to 1 keep 1
            queued 9 running 0 wait 0 up 0 starting 1 -> grow to 1 keep 1, more in 4000 ms
            queued 9 running 0 wait 4000 up 0 starting 1 -> grow to 2 keep 2, more in 4000 ms
            queued 9 running 1 wait 3999 up 1 starting 0 -> grow to 1 keep 1, more in 1 ms
            queued 9 running 1 wait 4000 up 1 starting 0 -> grow to 2 keep 2, more in 4000 ms
            queued 9 running 1 wait 8000 up 1 starting 1 -> grow to 3 keep 3, more in 4000 ms
            queued 9 running 5 wait 60000 up 5 starting 0 -> grow to 5 keep 5
            queued 0 running 3 wait 0 up 3 starting 0 -> grow to 0 keep 0
        "#]]
        .assert_eq(&table(&DELAY, &rows));
    }

    #[test]
    fn concurrent_workers_are_counted_on() {
        let rules = ScalingRules { max_concurrency: 10, ..DELAY };
        expect![[r#"
            queued 9 running 0 wait 60000 up 0 starting 1 -> grow to 1 keep 1
            queued 21 running 10 wait 60000 up 1 starting 0 -> grow to 4 keep 4
        "#]]
        .assert_eq(&table(&rules, &[(9, 0, 60_000, 0, 1), (21, 10, 60_000, 1, 0)]));
    }

    #[test]
    fn the_request_count_grows_the_fleet() {
        let rules = ScalingRules { scaler: Scaler::RequestCount { jobs: 4 }, workers_min: 1, ..DELAY };
        let rows = [
            (0, 0, 0, 0, 0),
            (1, 0, 0, 0, 0),
            (4, 0, 0, 0, 0),
            (5, 0, 0, 0, 0),
            (99, 5, 0, 5, 0),
            (0, 9, 0, 2, 0),
        ];
        expect![[r#"
            queued 0 running 0 wait 0 up 0 starting 0 -> grow to 1 keep 1
            queued 1 running 0 wait 0 up 0 starting 0 -> grow to 1 keep 1
            queued 4 running 0 wait 0 up 0 starting 0 -> grow to 1 keep 1
            queued 5 running 0 wait 0 up 0 starting 0 -> grow to 2 keep 2
            queued 99 running 5 wait 0 up 5 starting 0 -> grow to 5 keep 5
            queued 0 running 9 wait 0 up 2 starting 0 -> grow to 1 keep 3
        "#]]
        .assert_eq(&table(&rules, &rows));
    }

    #[test]
    fn outstanding_requests_grow_the_fleet_without_a_queue() {
        let scaler = Scaler::RequestCount { jobs: 4 };
        let rules = ScalingRules { scaler, is_balanced: true, max_concurrency: u64::MAX, ..DELAY };
        expect![[r#"
            queued 0 running 0 wait 0 up 1 starting 0 -> grow to 0 keep 0
            queued 0 running 9 wait 0 up 1 starting 0 -> grow to 3 keep 3
            queued 1 running 0 wait 0 up 0 starting 0 -> grow to 1 keep 1
        "#]]
        .assert_eq(&table(&rules, &[(0, 0, 0, 1, 0), (0, 9, 0, 1, 0), (1, 0, 0, 0, 0)]));
    }

    #[test]
    fn a_maximum_of_none_wins_over_everything() {
        let rules = ScalingRules { workers_min: 2, workers_max: 0, ..DELAY };
        expect![[r#"
            queued 7 running 2 wait 60000 up 2 starting 0 -> grow to 0 keep 0
        "#]]
        .assert_eq(&table(&rules, &[(7, 2, 60_000, 2, 0)]));
    }
}
