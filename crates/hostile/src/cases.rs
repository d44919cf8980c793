//! How many inputs a property gets.

use proptest::test_runner::{Config, FileFailurePersistence};

/// `few` inputs in an ordinary run, as many as `PROPTEST_CASES` says in a longer one. Inputs that failed are kept in
/// a file beside the test's source and tried first from then on.
pub fn cases(few: u32) -> Config {
    let persistence = FileFailurePersistence::WithSource("regressions");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(few);
    Config { cases, failure_persistence: Some(Box::new(persistence)), ..Config::default() }
}
