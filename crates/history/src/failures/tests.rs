//! The groups of failures: what is one group, what is bounded, and what is stored.

use std::fs;

use super::*;
use crate::HOUR_MS;

const NOW: u64 = 1_896_127_200_000;

fn endpoint(number: u128) -> EndpointId {
    EndpointId::mint(number)
}

fn failure(at: u64, error: &str) -> Failure {
    Failure {
        endpoint: endpoint(1),
        job: JobId::mint(Millis(at), 0, false),
        worker: None,
        at: Millis(at),
        version: 3,
        kind: FailureKind::Handler,
        error: Some(error.to_owned()),
        keeps_text: true,
        count: 1,
    }
}

fn present(keeps_text: bool) -> BTreeMap<EndpointId, bool> {
    [(endpoint(1), keeps_text)].into()
}

fn read(failures: &Failures, since: u64, now: u64) -> Vec<(String, u64)> {
    let groups = failures.read(&endpoint(1), Millis(since), Millis(now), 3);
    groups.into_iter().map(|group| (group.message.unwrap_or_default(), group.count)).collect()
}

#[test]
fn failures_that_differ_in_numbers_are_one_group() {
    let failures = Failures::default();
    let hour = |hours| NOW - hours * HOUR_MS;
    let all = [
        failure(hour(3), "no customer 17"),
        failure(hour(1), "no customer 4711"),
        failure(hour(1) + 5, "out of memory"),
        Failure { version: 4, ..failure(NOW, "no customer 5") },
    ];
    failures.add(all.to_vec(), &present(true));
    let groups = failures.read(&endpoint(1), Millis(hour(4)), Millis(NOW), 4);
    assert_eq!(groups.len(), 2);
    let group = &groups[0];
    assert_eq!((group.message.as_deref(), group.count), (Some("no customer #"), 3));
    assert_eq!(group.per_hour, [0, 1, 0, 1, 1]);
    assert_eq!((group.first_at, group.last_at, group.since_version), (hour(3), NOW, 3));
    assert_eq!((group.present_version, group.present_version_count), (4, Some(1)));
    assert_eq!(group.job, all[3].job);
    // A shorter span has fewer jobs, and the first time stays.
    let later = failures.read(&endpoint(1), Millis(NOW), Millis(NOW), 4);
    assert_eq!((later.len(), later[0].count, later[0].first_at), (1, 1, hour(3)));
    assert_eq!(later[0].group, group.group);
}

/// The jobs of the first group, and those of a version.
fn counts(failures: &Failures, since: u64, version: u32) -> (u64, Option<u64>) {
    let groups = failures.read(&endpoint(1), Millis(since), Millis(NOW), version);
    (groups[0].count, groups[0].present_version_count)
}

fn in_version(version: u32, at: u64) -> Failure {
    Failure { version, ..failure(at, "a") }
}

#[test]
fn a_group_counts_the_failures_of_the_present_version() {
    let dir = tempfile::tempdir().unwrap();
    let failures = Failures::open(dir.path()).unwrap();
    let before = NOW - 5 * HOUR_MS;
    failures.add(vec![in_version(3, before), in_version(3, NOW)], &present(true));
    assert_eq!(counts(&failures, before, 3), (2, Some(2)), "it is new in this version");
    assert_eq!(counts(&failures, before, 4), (2, Some(0)));
    let many = Failure { count: 3, ..in_version(4, before + HOUR_MS) };
    failures.add(vec![many, in_version(4, NOW)], &present(true));
    assert_eq!(counts(&failures, before, 4), (6, Some(4)));
    assert_eq!(counts(&failures, NOW, 4), (2, Some(1)), "of the same span");
    // A job of a round before the change.
    failures.add(vec![in_version(3, NOW)], &present(true));
    assert_eq!(counts(&failures, before, 4), (7, Some(4)));
    failures.write().unwrap();
    let again = Failures::open(dir.path()).unwrap();
    assert_eq!(counts(&again, before, 4), (7, Some(4)));
    again.add(vec![in_version(6, NOW)], &present(true));
    assert_eq!((counts(&again, before, 6), counts(&again, before, 7)), ((8, Some(1)), (8, Some(0))));
}

#[test]
fn groups_that_are_joined_add_up_what_failed_in_the_newest_version() {
    let failures = Failures::default();
    let all = [(3, "a"), (4, "a"), (4, "b"), (4, "b"), (3, "c"), (5, "d")];
    failures
        .add(all.map(|(version, error)| Failure { version, ..failure(NOW, error) }).to_vec(), &present(true));
    let version = |version| {
        let groups = failures.read(&endpoint(1), Millis(NOW), Millis(NOW), version);
        groups.iter().map(|group| (group.count, group.present_version_count)).collect::<Vec<_>>()
    };
    assert_eq!(version(4).iter().filter(|counts| counts.1 == Some(2)).count(), 1);
    failures.add(Vec::new(), &present(false));
    assert_eq!(version(5), [(6, Some(1))]);
}

#[test]
fn what_earlier_versions_of_the_server_counted_has_no_version() {
    let dir = tempfile::tempdir().unwrap();
    let (job, hour) = (JobId::mint(Millis(NOW), 0, false), NOW / HOUR_MS);
    let group = format!(
        r#"{{"kind":"handler","type":null,"message":"a","place":null,"firstAt":{NOW},"lastAt":{NOW},"sinceVersion":3,"job":"{job}","hours":[[{hour},2]]}}"#
    );
    let file = dir.path().join(format!("{}.json", endpoint(1)));
    fs::write(file, format!(r#"{{"groups":[{group}]}}"#)).unwrap();
    let failures = Failures::open(dir.path()).unwrap();
    assert_eq!(counts(&failures, NOW, 3), (2, Some(2)), "no version was before the first failure");
    assert_eq!(counts(&failures, NOW, 4), (2, None));
    failures.add(vec![in_version(4, NOW)], &present(true));
    assert_eq!(counts(&failures, NOW, 4), (3, None), "the first two can be of version 4");
    assert_eq!(counts(&failures, NOW, 5), (3, Some(0)));
    failures.add(vec![in_version(5, NOW)], &present(true));
    failures.write().unwrap();
    let again = Failures::open(dir.path()).unwrap();
    assert_eq!(counts(&again, NOW, 5), (4, Some(1)));
}

#[test]
fn an_endpoint_has_a_hundred_groups_and_thirty_days() {
    let failures = Failures::default();
    let words = |number: u64| {
        let letter = |n: u64| char::from(b'a' + (n % 26) as u8);
        [letter(number / 26), letter(number)].iter().collect::<String>()
    };
    let many = (0..130).map(|number| failure(NOW + number, &words(number))).collect();
    failures.add(many, &present(true));
    let groups = read(&failures, 0, NOW + 130);
    assert_eq!(groups.len(), 100);
    assert!(!groups.iter().any(|(message, _)| *message == words(0)), "the oldest are dropped");
    failures.add(vec![failure(NOW + 31 * 24 * HOUR_MS, "late")], &present(true));
    assert_eq!(read(&failures, 0, NOW + 31 * 24 * HOUR_MS), [("late".to_owned(), 1)]);
    assert_eq!(failures.lock().endpoints[&endpoint(1)].oldest(), Some(NOW + 31 * 24 * HOUR_MS));
}

#[test]
fn messages_are_not_stored_where_they_are_not_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let failures = Failures::open(dir.path()).unwrap();
    failures.add(vec![failure(NOW, "the secret word"), failure(NOW, "another word")], &present(true));
    failures.write().unwrap();
    let file = dir.path().join(format!("{}.json", endpoint(1)));
    assert!(fs::read_to_string(&file).unwrap().contains("secret"));
    failures.add(vec![Failure { keeps_text: false, ..failure(NOW + 1, "a third word") }], &present(false));
    assert_eq!(read(&failures, 0, NOW), [(String::new(), 3)]);
    failures.write().unwrap();
    assert!(!fs::read_to_string(&file).unwrap().contains("word"));
}

#[test]
fn groups_survive_a_restart_and_go_with_their_endpoint() {
    let dir = tempfile::tempdir().unwrap();
    let failures = Failures::open(dir.path()).unwrap();
    failures.add(vec![failure(NOW, "a"), failure(NOW, "a")], &present(true));
    failures.write().unwrap();
    fs::write(dir.path().join("n1qhn1qhn1qhn1.json"), "no JSON").unwrap();
    let again = Failures::open(dir.path()).unwrap();
    assert_eq!(read(&again, NOW, NOW), [("a".to_owned(), 2)]);
    again.add(Vec::new(), &BTreeMap::new());
    again.write().unwrap();
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["n1qhn1qhn1qhn1.foreign"]);
}

#[test]
fn memory_is_bounded_over_all_endpoints() {
    let failures = Failures::default();
    let mut all = BTreeMap::new();
    for number in 0..400 {
        let id = endpoint(number);
        all.insert(id, true);
        let words = |n: u8| format!("{} {}", char::from(b'a' + n % 26), char::from(b'A' + n / 26));
        let long = "x".repeat(900);
        let made = (0..100).map(|n| Failure {
            endpoint: id,
            ..failure(NOW + number as u64, &format!("{}{long}", words(n)))
        });
        failures.add(made.collect(), &all);
    }
    let state = failures.lock();
    let bytes: usize = state.endpoints.values().map(Groups::bytes).sum();
    assert!(bytes <= BYTES_MAX && state.endpoints[&endpoint(399)].bytes() > 0, "{bytes}");
}
