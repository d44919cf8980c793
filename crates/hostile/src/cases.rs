//! The configuration of property tests.

use proptest::test_runner::{Config, FileFailurePersistence};

/// Returns the configuration of a property test: `few` inputs, or `PROPTEST_CASES` if it is set. The seeds of failing inputs
/// are stored in a file beside the test's source and run first from then on.
pub fn cases(few: u32) -> Config {
    let persistence = FileFailurePersistence::WithSource("regressions");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(few);
    Config { cases, failure_persistence: Some(Box::new(persistence)), ..Config::default() }
}
