//! Worlds of a load-balancing endpoint keep its rules, bring about what they should, and reveal planted mistakes.

use std::collections::BTreeMap;

use longshore_sim::balancing;

/// Worlds of the test. Each takes some milliseconds.
const WORLDS: u64 = 100;

/// What the worlds should bring about.
const SEEN: [&str; 11] = [
    "a client leaves",
    "a request is lost",
    "a request is sent again",
    "a request waits",
    "a request was released",
    "a wait is over",
    "a worker dies",
    "a worker drains",
    "an answer",
    "the queue is full",
    "the server restarts",
];

#[test]
fn worlds_keep_every_rule_and_bring_about_everything() {
    let mut seen = BTreeMap::new();
    for seed in 0..WORLDS {
        let result = balancing::run(seed);
        assert!(result.violations.is_empty(), "seed {seed}: {:?}", result.violations.first());
        for (what, count) in result.seen {
            *seen.entry(what).or_insert(0) += count;
        }
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), SEEN);
    assert!(seen.values().all(|count| *count >= 10), "{seen:?}");
}

#[cfg(feature = "planted")]
#[test]
fn every_planted_mistake_is_found() {
    use longshore_planted::{Bug, plant};
    use longshore_sim::balancing::Rule;

    for (bug, rule) in [
        (Bug::DrainedServerChosen, Rule::NotDraining),
        (Bug::SickServerChosen, Rule::Healthy),
        (Bug::RequestSentTwice, Rule::SentOnce),
        (Bug::WaiterForgotten, Rule::NoneForgotten),
    ] {
        plant(Some(bug));
        let found =
            (0..WORLDS).any(|seed| balancing::run(seed).violations.iter().any(|broken| broken.rule == rule));
        plant(None);
        assert!(found, "{bug:?}");
    }
}
