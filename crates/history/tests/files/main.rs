//! The history over restarts: what a killed server leaves, days that are closed, foreign bytes, the budget.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod closed_days;
mod failed_writes;

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use longshore_history::{
    Activity, Field, ForwardedActivity, HOUR_MS, History, MINUTE_MS, Observed, ObservedForwards,
    ObservedWorkers, Record, Timeline,
};
use longshore_model::{EndpointId, JobState, Millis};

/// A minute's start: 2030-01-31T22:00:00Z.
const BEGIN: u64 = 1_896_127_200_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const BUDGET: u64 = 512 << 20;

fn open(dir: &Path, at: u64) -> History {
    History::open(dir, BUDGET, Millis(at)).unwrap()
}

fn endpoint(number: u128) -> EndpointId {
    EndpointId::mint(number)
}

/// Runs minutes in which each endpoint completes `jobs` jobs, and writes each when it is over.
fn run(history: &History, from: u64, minutes: u64, endpoints: &[(EndpointId, Activity)], jobs: u64) {
    for step in 1..=minutes * 30 {
        if step % 30 == 1 {
            for (_, activity) in endpoints {
                for job in 0..jobs {
                    activity.submitted(10);
                    activity.delivered(job * 3);
                    activity.ended(JobState::Completed, Some(100 + job));
                }
            }
        }
        let workers = ObservedWorkers { running: 1, ..ObservedWorkers::default() };
        let observed = endpoints.iter().map(|(endpoint, activity)| Observed {
            endpoint: *endpoint,
            activity,
            forwards: None,
            workers,
        });
        if history.sample(Millis(from + step * 2_000), observed) {
            history.write().unwrap();
        }
    }
}

fn one() -> Vec<(EndpointId, Activity)> {
    vec![(endpoint(1), Activity::default())]
}

fn completed(timeline: &Timeline) -> Vec<Option<u64>> {
    let slots = timeline.endpoints[0].1.slots().iter();
    slots.map(|slot| slot.as_ref().map(|record| record.get(Field::Completed))).collect()
}

/// What is known of the endpoints from `from` to `to`.
fn look(history: &History, endpoints: &[EndpointId], from: u64, to: u64, step_ms: u64) -> Timeline {
    history.read(history.plan(from, to, step_ms), endpoints)
}

fn total(timeline: &Timeline) -> Record {
    timeline.endpoints[0].1.total()
}

#[test]
fn minutes_outlive_a_restart_and_the_time_without_a_server_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN);
    run(&history, BEGIN, 3, &one(), 5);
    drop(history);
    // Two minutes without a server.
    let history = open(dir.path(), BEGIN + 5 * MINUTE_MS);
    run(&history, BEGIN + 5 * MINUTE_MS, 2, &one(), 7);
    let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + 7 * MINUTE_MS, MINUTE_MS);
    let five = Some(5);
    assert_eq!(completed(&timeline), [five, five, five, None, None, Some(7), Some(7)]);
    assert_eq!(timeline.starts, [BEGIN, BEGIN + 5 * MINUTE_MS]);
    // Steps in memory do not reach back: the minutes serve a finer step, too.
    let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + 7 * MINUTE_MS, 2_000);
    assert_eq!((timeline.span.step_ms, total(&timeline).get(Field::Completed)), (MINUTE_MS, 29));
}

#[test]
fn a_server_without_a_past_has_fine_steps_immediately() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN + 20_000);
    run(&history, BEGIN + 20_000, 3, &one(), 5);
    let timeline = look(&history, &[endpoint(1)], BEGIN - 10 * MINUTE_MS, BEGIN + 3 * MINUTE_MS, 2_000);
    assert_eq!((timeline.span.step_ms, total(&timeline).get(Field::Completed)), (2_000, 15));
}

#[test]
fn an_hour_has_its_present_minute_and_each_minute_once() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN);
    let one = one();
    let hour = |steps: u64, is_written: bool| {
        let workers = ObservedWorkers { running: 1, ..ObservedWorkers::default() };
        for step in 1..=steps {
            let observed = Observed { endpoint: endpoint(1), activity: &one[0].1, forwards: None, workers };
            if history.sample(Millis(BEGIN + step * 2_000), [observed]) && is_written {
                history.write().unwrap();
            }
        }
        let timeline = look(&history, &[endpoint(1), endpoint(2)], BEGIN, BEGIN + HOUR_MS, HOUR_MS);
        let busy = |one: usize| {
            timeline.endpoints[one].1.slots()[0].as_ref().map(|record| record.get(Field::BusyMs))
        };
        (busy(0), busy(1))
    };
    assert_eq!(hour(0, true), (None, None));
    // A minute that is written, one that waits for it, and 20 s. An endpoint at which nothing happens is known, too.
    assert_eq!(hour(30, true), (Some(60_000), Some(0)));
    assert_eq!(hour(60, false), (Some(120_000), Some(0)));
    assert_eq!(hour(70, false), (Some(140_000), Some(0)));
    history.write().unwrap();
    assert_eq!(hour(70, true), (Some(140_000), Some(0)));
    let minutes = look(&history, &[endpoint(1)], BEGIN, BEGIN + 140_000, MINUTE_MS);
    assert_eq!(minutes.span.steps(), 2, "only whole minutes are steps");
}

#[test]
fn what_is_recent_has_the_last_sample_and_not_what_is_older() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN);
    let one = one();
    assert_eq!(history.recent(&endpoint(1), BEGIN), None);
    run(&history, BEGIN, 3, &one, 5);
    let before = one[0].1.changes();
    one[0].1.delivered(4);
    one[0].1.ended(JobState::Failed, Some(900));
    assert_ne!(one[0].1.changes(), before);
    // One step of 2 s into a step of 10 s.
    let workers = ObservedWorkers::default();
    let observed = Observed { endpoint: endpoint(1), activity: &one[0].1, forwards: None, workers };
    history.sample(Millis(BEGIN + 3 * MINUTE_MS + 2_000), [observed]);
    let counts = |from: u64| {
        let recent = history.recent(&endpoint(1), from).unwrap();
        (recent.get(Field::Completed), recent.get(Field::Failed), recent.run.count(), recent.delay.count())
    };
    assert_eq!(counts(0), (15, 1, 16, 16));
    assert_eq!(counts(BEGIN + MINUTE_MS), (10, 1, 11, 11));
    assert_eq!(counts(BEGIN + 3 * MINUTE_MS), (0, 1, 1, 1));
    assert_eq!(history.recent(&endpoint(2), 0), None);
}

#[test]
fn forwarded_requests_are_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN);
    let (activity, forwards) = (Activity::default(), ForwardedActivity::default());
    for step in 1..=30 {
        forwards.answered(2);
        forwards.first_byte(40);
        let forwards =
            ObservedForwards { activity: &forwards, waiting: 2, oldest_wait_ms: 9, outstanding: 3 };
        let workers = ObservedWorkers::default();
        let observed =
            Observed { endpoint: endpoint(1), activity: &activity, forwards: Some(forwards), workers };
        if history.sample(Millis(BEGIN + step * 2_000), [observed]) {
            history.write().unwrap();
        }
    }
    drop(history);
    let history = open(dir.path(), BEGIN + 2 * MINUTE_MS);
    let record = total(&look(&history, &[endpoint(1)], BEGIN, BEGIN + MINUTE_MS, MINUTE_MS));
    assert_eq!((record.get(Field::Answered2xx), record.get(Field::Answered5xx)), (30, 0));
    assert_eq!((record.get(Field::QueuedMax), record.get(Field::Running)), (2, 3));
    assert_eq!((record.get(Field::OldestMs), record.first_byte.count()), (9, 30));
}

#[test]
fn a_killed_server_loses_the_present_minute_and_a_stopped_one_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN);
    let endpoints = one();
    run(&history, BEGIN, 2, &endpoints, 5);
    endpoints[0].1.submitted(1);
    let observed = |activity| Observed {
        endpoint: endpoint(1),
        activity,
        forwards: None,
        workers: ObservedWorkers::default(),
    };
    history.sample(Millis(BEGIN + 2 * MINUTE_MS + 2_000), [observed(&endpoints[0].1)]);
    drop(history);
    let history = open(dir.path(), BEGIN + 2 * MINUTE_MS + 4_000);
    let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + 3 * MINUTE_MS, MINUTE_MS);
    assert_eq!(completed(&timeline), [Some(5), Some(5), None]);
    // A server that stops writes the part, and the next one adds its own.
    let activity = Activity::default();
    for step in [6_000, 8_000] {
        activity.submitted(1);
        history.sample(Millis(BEGIN + 2 * MINUTE_MS + step), [observed(&activity)]);
        history.end_minute();
        history.write().unwrap();
    }
    let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + 3 * MINUTE_MS, MINUTE_MS);
    assert_eq!(timeline.endpoints[0].1.slots()[2].as_ref().unwrap().get(Field::Submitted), 2);
}

#[test]
fn an_end_that_was_cut_off_is_dropped_at_every_length() {
    let dir = tempfile::tempdir().unwrap();
    run(&open(dir.path(), BEGIN), BEGIN, 2, &one(), 5);
    let path = dir.path().join("minutes/2030-01-31.log");
    let whole = fs::read(&path).unwrap();
    let mut lost = 0;
    for len in (0..whole.len()).rev() {
        fs::write(&path, &whole[..len]).unwrap();
        let history = open(dir.path(), BEGIN + 2 * MINUTE_MS);
        run(&history, BEGIN + 2 * MINUTE_MS, 1, &one(), 7);
        let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + 3 * MINUTE_MS, MINUTE_MS);
        let found = completed(&timeline);
        assert_eq!(found[2], Some(7), "{len}");
        assert!(found[..2].iter().all(|slot| matches!(slot, None | Some(5))), "{len}: {found:?}");
        lost = found.iter().filter(|slot| slot.is_none()).count();
    }
    assert_eq!(lost, 2);
}

#[test]
fn changed_and_foreign_bytes_stop_nothing() {
    let dir = tempfile::tempdir().unwrap();
    run(&open(dir.path(), BEGIN), BEGIN, 2, &one(), 5);
    let path = dir.path().join("minutes/2030-01-31.log");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        fs::write(&path, &changed).unwrap();
        let history = open(dir.path(), BEGIN + 2 * MINUTE_MS);
        run(&history, BEGIN + 2 * MINUTE_MS, 1, &one(), 7);
        let found = completed(&look(&history, &[endpoint(1)], BEGIN, BEGIN + 3 * MINUTE_MS, MINUTE_MS));
        assert!(
            found[2] == Some(7) && found[..2].iter().all(|slot| matches!(slot, None | Some(5))),
            "{at}: {found:?}"
        );
    }
    // A file that is no history is kept under another name.
    fs::write(&path, "a letter").unwrap();
    run(&open(dir.path(), BEGIN), BEGIN, 1, &one(), 5);
    assert_eq!(fs::read(dir.path().join("minutes/2030-01-31.log.foreign")).unwrap(), b"a letter");
    assert!(path.exists());
}

#[test]
fn closed_days_have_the_same_minutes_and_their_hours() {
    let dir = tempfile::tempdir().unwrap();
    let endpoints: Vec<_> = (1..4).map(|number| (endpoint(number), Activity::default())).collect();
    let history = open(dir.path(), BEGIN);
    run(&history, BEGIN, 90, &endpoints, 4);
    let read =
        |history: &History, step_ms| look(history, &[endpoint(2)], BEGIN, BEGIN + 2 * HOUR_MS, step_ms);
    let open_day = read(&history, MINUTE_MS);
    let open_hours = read(&history, HOUR_MS);
    // The next minute is of the next day, and of the next month.
    run(&history, BEGIN + 2 * HOUR_MS, 1, &endpoints, 4);
    assert!(dir.path().join("minutes/2030-01-31.day").exists());
    assert!(!dir.path().join("minutes/2030-01-31.log").exists());
    assert!(dir.path().join("hours/2030-01.month").exists());
    let closed_day = read(&history, MINUTE_MS);
    assert_eq!(closed_day.endpoints[0].1.slots()[..90], open_day.endpoints[0].1.slots()[..90]);
    assert_eq!(completed(&closed_day)[90..], [None; 30]);
    assert_eq!(closed_day.starts, [BEGIN]);
    let hours = read(&history, HOUR_MS);
    assert_eq!(completed(&hours), [Some(240), Some(120)]);
    assert_eq!(hours.endpoints[0].1.slots(), open_hours.endpoints[0].1.slots());
    assert_eq!(total(&hours).run, total(&closed_day).run);
    // An endpoint that was not there did nothing.
    let absent = look(&history, &[endpoint(9)], BEGIN, BEGIN + HOUR_MS, MINUTE_MS);
    assert_eq!(total(&absent).get(Field::Completed), 0);
}

#[test]
fn a_foreign_day_is_left_out_and_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), BEGIN);
    run(&history, BEGIN, 120, &one(), 1);
    run(&history, BEGIN + 2 * HOUR_MS, 1, &one(), 1);
    let path = dir.path().join("minutes/2030-01-31.day");
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        fs::write(&path, &changed).unwrap();
        let found =
            completed(&look(&history, &[endpoint(1)], BEGIN, BEGIN + 2 * HOUR_MS + MINUTE_MS, MINUTE_MS));
        assert_eq!(found[120], Some(1), "{at}");
    }
}

#[test]
fn the_oldest_days_go_when_the_budget_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path(), 2_000, Millis(BEGIN)).unwrap();
    for day in 0..12 {
        run(&history, BEGIN + day * DAY_MS, 20, &one(), 9 + day);
    }
    let names = |folder: &str| {
        let entries = fs::read_dir(dir.path().join(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let days = names("minutes");
    assert!(days.len() < 12 && days.contains(&"2030-02-11.log".to_owned()), "{days:?}");
    let bytes: u64 =
        days.iter().map(|name| fs::metadata(dir.path().join("minutes").join(name)).unwrap().len()).sum();
    // The present day comes on top.
    assert!(bytes < 2_000 + 1_500, "{bytes}");
    let hours = look(&history, &[endpoint(1)], BEGIN, BEGIN + 12 * DAY_MS, HOUR_MS);
    assert_eq!(completed(&hours)[0], Some(20 * 9));
    // A day without its minutes is read by hours, and one with them by minutes.
    let old = look(&history, &[endpoint(1)], BEGIN, BEGIN + HOUR_MS, 5 * MINUTE_MS);
    assert_eq!((old.span.step_ms, completed(&old)), (HOUR_MS, vec![Some(20 * 9)]));
    let last = BEGIN + 11 * DAY_MS;
    let new = look(&history, &[endpoint(1)], last, last + HOUR_MS, 5 * MINUTE_MS);
    assert_eq!((new.span.step_ms, completed(&new)[0]), (5 * MINUTE_MS, Some(5 * 20)));
    // Before the first hour there is nothing that is coarser.
    let none = look(&history, &[endpoint(1)], BEGIN - 40 * DAY_MS, BEGIN - 39 * DAY_MS, MINUTE_MS);
    assert_eq!(total(&none), Record::default());
    // Minutes are kept for 30 days.
    run(&history, BEGIN + 60 * DAY_MS, 1, &one(), 1);
    assert_eq!(names("minutes"), ["2030-04-01.log"]);
    assert_eq!(names("hours"), ["2030-01.month", "2030-02.month"]);
}

/// Samples an endpoint without work at the end of a step of 2 s.
fn sample(history: &History, at: u64) {
    let activity = Activity::default();
    let workers = ObservedWorkers::default();
    let observed = Observed { endpoint: endpoint(1), activity: &activity, forwards: None, workers };
    history.sample(Millis(at), [observed]);
}

/// The log is a pipe, which blocks a reader until the test has written to it.
#[test]
fn a_sample_does_not_wait_for_a_reader_of_files() {
    const NONBLOCK: i32 = 0o4000;
    let dir = tempfile::tempdir().unwrap();
    let history = Arc::new(open(dir.path(), BEGIN));
    sample(&history, BEGIN + 2_000);
    let path = dir.path().join("minutes/2030-01-31.log");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let reading = Arc::clone(&history);
    let reader =
        thread::spawn(move || look(&reading, &[endpoint(1)], BEGIN - HOUR_MS, BEGIN + HOUR_MS, 2_000));
    let deadline = Instant::now() + Duration::from_secs(30);
    // A pipe without a reader cannot be opened like this.
    let pipe = loop {
        match fs::File::options().write(true).custom_flags(NONBLOCK).open(&path) {
            Ok(pipe) => break pipe,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::yield_now();
    };
    let (done, is_done) = mpsc::channel();
    let observing = Arc::clone(&history);
    let sampler = thread::spawn(move || {
        sample(&observing, BEGIN + 4_000);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(!reader.is_finished());
    // The log is a file again, so that the reader ends however often it looks.
    fs::remove_file(&path).unwrap();
    drop(pipe);
    assert_eq!(reader.join().unwrap().span.step_ms, 2_000);
    sampler.join().unwrap();
}

#[test]
fn what_was_planned_keeps_its_span_when_memory_moves_on() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), BEGIN - DAY_MS));
    fs::write(dir.path().join("minutes/2030-01-30.day"), "").unwrap();
    let history = open(dir.path(), BEGIN);
    run(&history, BEGIN, 20, &one(), 1);
    let (from, to) = (BEGIN + 5 * MINUTE_MS, BEGIN + 20 * MINUTE_MS);
    let plan = history.plan(from, to, 2_000);
    let before = history.read(plan, &[endpoint(1)]);
    sample(&history, to + 2_000);
    let after = history.read(plan, &[endpoint(1)]);
    // Decided anew, the steps would be longer.
    assert_eq!(history.plan(from, to, 2_000).span.step_ms, 10_000);
    assert_eq!((before.span, after.span), (plan.span, plan.span));
    assert_eq!(after.endpoints[0].1.slots()[1..], before.endpoints[0].1.slots()[1..]);
}

#[test]
fn minutes_of_another_server_are_added_once_also_to_closed_days() {
    let (first, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let history = open(first.path(), BEGIN).with_copies();
    run(&history, BEGIN, 3, &one(), 5);
    let copies = history.take_copies();
    assert_eq!(
        copies.iter().map(|copy| copy.minute).collect::<Vec<_>>(),
        [0, 1, 2].map(|m| BEGIN / MINUTE_MS + m)
    );
    assert!(history.take_copies().is_empty());
    history.return_copies(copies.clone());
    assert_eq!(history.take_copies(), copies);

    // The next owner has minutes of its own on that day, and the day is over.
    let mut bytes: Vec<_> = copies.into_iter().map(|copy| copy.bytes).collect();
    bytes.push(b"no minute".to_vec());
    let history = open(other.path(), BEGIN + 10 * MINUTE_MS);
    run(&history, BEGIN + 10 * MINUTE_MS, 2, &one(), 7);
    run(&history, BEGIN + DAY_MS, 1, &one(), 1);
    for _ in 0..2 {
        history.add_copies(&bytes).unwrap();
        let minutes = look(&history, &[endpoint(1)], BEGIN, BEGIN + 12 * MINUTE_MS, MINUTE_MS);
        assert_eq!(total(&minutes).get(Field::Completed), 3 * 5 + 2 * 7);
        assert_eq!(completed(&minutes)[..4], [Some(5), Some(5), Some(5), None]);
    }
    // Closed once more, with the hours of both.
    let history = open(other.path(), BEGIN + 2 * DAY_MS);
    run(&history, BEGIN + 2 * DAY_MS, 1, &one(), 1);
    for step_ms in [MINUTE_MS, HOUR_MS] {
        let day = look(&history, &[endpoint(1)], BEGIN, BEGIN + 2 * HOUR_MS, step_ms);
        assert_eq!(total(&day).get(Field::Completed), 3 * 5 + 2 * 7, "{step_ms}");
    }
}
