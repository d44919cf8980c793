//! The configuration of property tests.

use proptest::test_runner::{Config, FileFailurePersistence};

/// Returns the configuration of a property test with `default` inputs, or `PROPTEST_CASES` inputs if that is set. The seeds
/// of failing inputs are stored in a file beside the source of the test, and are tested first from then on.
pub fn cases(default: u32) -> Config {
    let persistence = FileFailurePersistence::WithSource("regressions");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    Config { cases, failure_persistence: Some(Box::new(persistence)), ..Config::default() }
}
