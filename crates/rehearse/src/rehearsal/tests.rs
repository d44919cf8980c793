//! Whole rehearsals of small traces, by hand and by chance.

use std::time::Duration;

use longshore_fleet::Scaler;

use super::*;
use crate::Interval;

/// Starts take 20 s, and idle workers are kept for 5 s.
fn conditions() -> Conditions {
    let rules = ScalingRules {
        workers_min: 0,
        workers_max: 3,
        idle_timeout_ms: 5_000,
        idle_timeout_ms_max: None,
        scaler: Scaler::QueueDelay { ms: 4_000 },
        max_concurrency: 1,
        version: 1,
        is_balanced: false,
    };
    Conditions { rules, starts: Quantiles::of_one(20_000), seed: 1 }
}

fn with(change: impl FnOnce(&mut ScalingRules)) -> Conditions {
    let mut conditions = conditions();
    change(&mut conditions.rules);
    conditions
}

/// Jobs at these times in s, which run for 1 s each.
fn jobs_at(times_s: impl IntoIterator<Item = u64>) -> Trace {
    let lines: Vec<String> = times_s.into_iter().map(|at| format!("{at},1000")).collect();
    Trace::parse(&lines.join("\n")).unwrap()
}

fn waits(outcome: &Outcome) -> Vec<u64> {
    outcome.waits_ms.clone()
}

#[test]
fn a_job_without_workers_waits_for_a_start() {
    // The second one finds the worker, the third one comes after its end.
    let outcome = rehearse(&jobs_at([0, 23, 60]), &conditions());
    assert_eq!(waits(&outcome), [0, 20_000, 20_000]);
    assert_eq!((outcome.starts, outcome.workers_most), (2, 1));
    // 20 s of start, 1 s of work, 2 s idle, 1 s of work and 5 s idle; then 20 s of start and 1 s of work.
    assert_eq!((outcome.paid_ms, outcome.busy_ms), (29_000 + 21_000, 3_000));
    assert_eq!(outcome.wait(0.5), Some(Duration::from_secs(20)));
}

#[test]
fn a_kept_worker_makes_no_job_wait_and_is_paid_for() {
    let outcome = rehearse(&jobs_at([30, 90, 150]), &with(|rules| rules.workers_min = 1));
    assert_eq!(waits(&outcome), [0, 0, 20_000], "the trace begins with a start");
    let kept = Trace::parse("0,0\n100,1000\n200,1000").unwrap();
    let outcome = rehearse(&kept, &with(|rules| rules.workers_min = 1));
    assert_eq!((outcome.starts, outcome.paid_ms, outcome.busy_ms), (1, 201_000, 2_000));
}

#[test]
fn a_burst_makes_the_fleet_grow_up_to_its_maximum() {
    let burst = jobs_at([0; 12]);
    let by_count = |rules: &mut ScalingRules| rules.scaler = Scaler::RequestCount { jobs: 1 };
    let outcome = rehearse(&burst, &with(by_count));
    assert_eq!((outcome.starts, outcome.workers_most), (3, 3));
    assert_eq!(waits(&outcome)[..4], [20_000, 20_000, 20_000, 21_000], "three at a time");
    let alone = rehearse(&burst, &with(|rules| rules.workers_max = 1));
    assert_eq!((alone.workers_most, alone.wait(1.0)), (1, Some(Duration::from_secs(31))));
    let concurrent = rehearse(&burst, &with(|rules| (rules.workers_max, rules.max_concurrency) = (1, 12)));
    assert_eq!((concurrent.wait(1.0), concurrent.busy_ms), (Some(Duration::from_secs(20)), 1_000));
    // The delay of 4 s adds a worker every 4 s.
    assert_eq!(rehearse(&burst, &conditions()).workers_most, 3);
}

#[test]
fn a_paused_endpoint_runs_nothing() {
    let outcome = rehearse(&jobs_at([0, 1]), &with(|rules| rules.workers_max = 0));
    assert_eq!((outcome.jobs, outcome.expired, outcome.starts, outcome.paid_ms), (2, 2, 0, 0));
    assert_eq!(rehearse(&Trace::default(), &conditions()), Outcome::default());
}

/// Ten hours of jobs after pauses that the function draws, in s.
fn pattern(seed: u64, pause_s: impl Fn(&mut fastrand::Rng, u64) -> u64) -> Trace {
    let (mut rng, mut at, mut times) = (fastrand::Rng::with_seed(seed), 0, Vec::new());
    while at < 36_000 {
        times.push(at);
        at += pause_s(&mut rng, times.len() as u64);
    }
    jobs_at(times)
}

#[test]
fn idle_gaps_keep_workers_where_jobs_come_again_and_nowhere_else() {
    let by_gaps = with(|rules| rules.idle_timeout_ms_max = Some(3_600_000));
    // A job every minute. Ten gaps of 39 s after a start of 20 s are known at the eleventh job. The twelfth gap has no start
    // before it and is longer; from then on there is none.
    let periodic = pattern(1, |_, _| 60);
    let (fixed, chosen) = (rehearse(&periodic, &conditions()), rehearse(&periodic, &by_gaps));
    assert_eq!((fixed.starts, chosen.starts), (600, 12));
    assert!(chosen.paid_ms < fixed.paid_ms * 5 / 2, "{} and {}", chosen.paid_ms, fixed.paid_ms);
    // Groups of twenty jobs every two hours: the worker lives as long as its group.
    let grouped = pattern(1, |_, n| if n % 20 == 0 { 7_200 } else { 30 });
    let (fixed, chosen) = (rehearse(&grouped, &conditions()), rehearse(&grouped, &by_gaps));
    assert!(chosen.starts * 5 < fixed.starts, "{} and {}", chosen.starts, fixed.starts);
    assert!(chosen.paid_ms < fixed.paid_ms * 3 / 2, "{} and {}", chosen.paid_ms, fixed.paid_ms);
    // A job every two hours: nothing to gain, and nothing is spent.
    let rare = pattern(1, |rng, _| rng.u64(6_000..8_000));
    assert_eq!(rehearse(&rare, &conditions()), rehearse(&rare, &by_gaps));
}

#[test]
fn every_job_is_delivered_once_with_any_settings() {
    let mut rng = fastrand::Rng::with_seed(7);
    for seed in 0..200 {
        let minutes: Vec<Interval> = (0..rng.u64(1..60))
            .map(|minute| Interval {
                from: Millis(minute * 60_000),
                length_ms: 60_000,
                jobs: if rng.bool() { rng.u64(0..40) } else { 0 },
                run: rng.bool().then(|| Quantiles::new(rng.u64(0..2_000), &[(0.95, rng.u64(0..30_000))])),
            })
            .collect();
        let trace = Trace::recorded(&minutes, 500, seed);
        let conditions = Conditions {
            rules: ScalingRules {
                workers_min: rng.u32(0..3),
                workers_max: rng.u32(1..6),
                idle_timeout_ms: rng.u64(1..30) * 1_000,
                idle_timeout_ms_max: rng.bool().then_some(600_000),
                scaler: if rng.bool() {
                    Scaler::QueueDelay { ms: rng.u64(0..10) * 1_000 }
                } else {
                    Scaler::RequestCount { jobs: rng.u64(0..10) }
                },
                max_concurrency: rng.u64(0..4),
                version: 1,
                is_balanced: false,
            },
            starts: Quantiles::new(rng.u64(0..30_000), &[(0.95, 60_000)]),
            seed,
        };
        let outcome = rehearse(&trace, &conditions);
        let work_ms: u64 = trace.arrivals().iter().map(|arrival| arrival.run_ms).sum();
        assert_eq!((outcome.waits_ms.len() as u64, outcome.expired), (outcome.jobs, 0), "seed {seed}");
        assert!(outcome.busy_ms <= outcome.paid_ms, "seed {seed}");
        if conditions.rules.max_concurrency <= 1 {
            assert_eq!(outcome.busy_ms, work_ms, "seed {seed}");
        } else {
            assert!(outcome.busy_ms <= work_ms, "seed {seed}");
        }
        let most = conditions.rules.workers_max;
        assert!(outcome.workers_most <= most, "seed {seed}");
        assert_eq!(outcome, rehearse(&trace, &conditions), "seed {seed}");
    }
}
