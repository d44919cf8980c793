//! Days that are closed: a clock that is set back, a server that is killed meanwhile, and damaged files.

use super::*;

const MIDNIGHT: u64 = BEGIN + 2 * HOUR_MS;

/// The completed jobs of the hour before midnight, read by minutes and by hours.
fn completed_before_midnight(history: &History) -> [u64; 2] {
    [MINUTE_MS, HOUR_MS].map(|step_ms| {
        total(&look(history, &[endpoint(1)], MIDNIGHT - HOUR_MS, MIDNIGHT, step_ms)).get(Field::Completed)
    })
}

#[test]
fn a_clock_that_is_set_back_adds_to_a_closed_day() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), MIDNIGHT - 20 * MINUTE_MS);
    run(&history, MIDNIGHT - 20 * MINUTE_MS, 10, &one(), 5);
    run(&history, MIDNIGHT, 1, &one(), 5);
    assert!(dir.path().join("minutes/2030-01-31.day").exists());
    drop(history);
    // Five of these minutes were there before.
    let history = open(dir.path(), MIDNIGHT - 15 * MINUTE_MS);
    run(&history, MIDNIGHT - 15 * MINUTE_MS, 10, &one(), 7);
    let minutes = |history: &History| {
        completed(&look(history, &[endpoint(1)], MIDNIGHT - 20 * MINUTE_MS, MIDNIGHT, MINUTE_MS))
    };
    let expected = [[Some(5); 5], [Some(12); 5], [Some(7); 5], [None; 5]].concat();
    assert_eq!((minutes(&history), completed_before_midnight(&history)), (expected.clone(), [120, 120]));
    run(&history, MIDNIGHT, 1, &one(), 5);
    assert!(!dir.path().join("minutes/2030-01-31.log").exists());
    assert_eq!((minutes(&history), completed_before_midnight(&history)), (expected, [120, 120]));
}

#[test]
fn a_server_that_was_killed_while_it_closed_a_day_counts_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let history = open(dir.path(), MIDNIGHT - 20 * MINUTE_MS);
    run(&history, MIDNIGHT - 20 * MINUTE_MS, 10, &one(), 5);
    let log = dir.path().join("minutes/2030-01-31.log");
    let left = fs::read(&log).unwrap();
    run(&history, MIDNIGHT, 1, &one(), 5);
    drop(history);
    fs::write(&log, left).unwrap();
    let history = open(dir.path(), MIDNIGHT + MINUTE_MS);
    assert_eq!(completed_before_midnight(&history), [50, 50]);
    run(&history, MIDNIGHT + MINUTE_MS, 1, &one(), 5);
    assert!(!log.exists());
    assert_eq!(completed_before_midnight(&history), [50, 50]);
}

#[test]
fn a_day_that_cannot_be_closed_stays_and_is_closed_later() {
    let dir = tempfile::tempdir().unwrap();
    let names = |end: &str| dir.path().join(format!("minutes/2030-01-31.{end}"));
    let history = open(dir.path(), MIDNIGHT - 20 * MINUTE_MS);
    run(&history, MIDNIGHT - 20 * MINUTE_MS, 10, &one(), 5);
    // The closed file cannot be written.
    fs::create_dir(names("draft")).unwrap();
    run(&history, MIDNIGHT, 1, &one(), 5);
    assert!(names("log").exists() && !names("log.foreign").exists());
    assert_eq!(completed_before_midnight(&history), [50, 50]);
    fs::remove_dir(names("draft")).unwrap();
    run(&history, MIDNIGHT + DAY_MS, 1, &one(), 5);
    assert!(names("day").exists() && !names("log").exists());
    assert_eq!(completed_before_midnight(&history), [50, 50]);
}

#[test]
fn a_closed_day_that_is_damaged_is_set_aside_and_its_log_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let names = |end: &str| dir.path().join(format!("minutes/2030-01-31.{end}"));
    let history = open(dir.path(), MIDNIGHT - 20 * MINUTE_MS);
    run(&history, MIDNIGHT - 20 * MINUTE_MS, 10, &one(), 5);
    fs::write(names("day"), "a letter").unwrap();
    assert_eq!(completed_before_midnight(&history), [50, 50]);
    run(&history, MIDNIGHT, 1, &one(), 5);
    assert!(names("day").exists() && names("day.foreign").exists() && !names("log").exists());
    assert_eq!(completed_before_midnight(&history), [50, 50]);
}
