//! Worlds that once revealed a mistake keep every promise now.

use longshore_sim::run;

const CORPUS: &str = include_str!("../corpus.txt");

#[test]
fn worlds_that_found_a_mistake_keep_every_promise() {
    let mut lived = 0;
    for line in CORPUS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (Some(seed), Some(steps)) = (number(), number()) else {
            panic!("not a seed and its steps: {line}")
        };
        let outcome = run::run_world(seed, steps, false);
        let first = outcome.violations.first().map(|violation| (violation.promise, &violation.text));
        assert_eq!(first, None, "again: {line}");
        lived += 1;
    }
    assert!(lived > 0, "the corpus is empty");
}
