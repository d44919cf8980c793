//! Writes that fail: a disk that is full or gone, and what a failed write leaves.

use super::*;

#[test]
fn a_disk_that_fails_and_recovers_loses_no_minute() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("minutes");
    let history = open(dir.path(), BEGIN);
    fs::remove_dir(&path).unwrap();
    let endpoints = one();
    let observe = |step: u64| {
        endpoints[0].1.submitted(1);
        let workers = ObservedWorkers::default();
        let observed = Observed { endpoint: endpoint(1), activity: &endpoints[0].1, forwards: None, workers };
        history.sample(Millis(BEGIN + step * 2_000), [observed])
    };
    let due: Vec<_> = (1..=60).filter(|step| observe(*step)).collect();
    assert_eq!(due.first(), Some(&30));
    history.write().unwrap_err();
    fs::create_dir(&path).unwrap();
    history.write().unwrap();
    let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + 2 * MINUTE_MS, MINUTE_MS);
    assert_eq!(total(&timeline).get(Field::Submitted), 60);
}

/// Samples an endpoint at which a job was submitted in each of the steps.
fn submit(history: &History, from: u64, steps: impl IntoIterator<Item = u64>) {
    let activity = Activity::default();
    for step in steps {
        activity.submitted(1);
        let workers = ObservedWorkers::default();
        let observed = Observed { endpoint: endpoint(1), activity: &activity, forwards: None, workers };
        history.sample(Millis(from + step * 2_000), [observed]);
    }
}

/// Runs `work` in a process that may write 512 bytes into a file. A write fails half way there, as it does on a full disk.
fn limited(test: &str, work: fn(&Path)) {
    const DIR: &str = "LONGSHORE_TEST_LIMITED";
    if let Some(dir) = std::env::var_os(DIR) {
        return work(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ && ulimit -f 1 && exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(format!("failed_writes::{test}"))
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn a_minute_that_does_not_fit_leaves_no_part() {
    limited("a_minute_that_does_not_fit_leaves_no_part", |dir| {
        let path = dir.join("minutes/2030-01-31.log");
        let history = open(dir, BEGIN);
        let mut written = Vec::new();
        for minute in 0..100 {
            submit(&history, BEGIN + minute * MINUTE_MS, 1..=30);
            if history.write().is_err() {
                assert!(!written.is_empty());
                assert_eq!(fs::read(&path).unwrap(), written);
                return;
            }
            written = fs::read(&path).unwrap();
        }
        panic!("the limit was not reached");
    });
}

#[test]
fn minutes_that_do_not_fit_together_are_written_once() {
    limited("minutes_that_do_not_fit_together_are_written_once", |dir| {
        let path = dir.join("minutes/2030-01-31.log");
        let other = dir.join("other");
        let history = open(dir, BEGIN);
        submit(&history, BEGIN, 1..=240);
        history.write().unwrap();
        submit(&history, BEGIN + 8 * MINUTE_MS, 1..=240);
        history.write().unwrap_err();
        fs::create_dir_all(other.join("minutes")).unwrap();
        fs::rename(&path, other.join("minutes/2030-01-31.log")).unwrap();
        history.write().unwrap();
        drop(history);
        let submitted = [dir, &other].map(|dir| {
            let history = open(dir, BEGIN + HOUR_MS);
            let timeline = look(&history, &[endpoint(1)], BEGIN, BEGIN + HOUR_MS, MINUTE_MS);
            total(&timeline).get(Field::Submitted)
        });
        assert_eq!(submitted, [240, 240]);
    });
}

/// A device on which writing fails, and cutting too.
#[test]
fn what_a_failed_write_left_is_cut_before_the_next_one() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |dir: &Path| dir.join("minutes/2030-01-31.log");
    let twin = open(other.path(), BEGIN);
    submit(&twin, BEGIN, 1..=60);
    twin.write().unwrap();
    let whole = fs::read(path(other.path())).unwrap();
    for len in 0..whole.len() {
        let _ = fs::remove_file(path(dir.path()));
        let history = open(dir.path(), BEGIN);
        std::os::unix::fs::symlink("/dev/full", path(dir.path())).unwrap();
        submit(&history, BEGIN, 1..=60);
        history.write().unwrap_err();
        fs::remove_file(path(dir.path())).unwrap();
        // What a write can leave of these two minutes.
        fs::write(path(dir.path()), &whole[..len]).unwrap();
        history.write().unwrap();
        assert_eq!(fs::read(path(dir.path())).unwrap(), whole, "{len}");
    }
}

#[test]
fn a_log_without_a_block_is_not_foreign() {
    let dir = tempfile::tempdir().unwrap();
    run(&open(dir.path(), BEGIN), BEGIN, 1, &one(), 5);
    fs::write(dir.path().join("minutes/2030-01-30.log"), "longshore").unwrap();
    let history = open(dir.path(), BEGIN + MINUTE_MS);
    run(&history, BEGIN + MINUTE_MS, 1, &one(), 5);
    assert!(!dir.path().join("minutes/2030-01-30.log.foreign").exists());
    assert!(!dir.path().join("minutes/2030-01-30.log").exists());
}
