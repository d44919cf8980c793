//! Random settings: each file is either usable or rejected in one line with the place of the mistake.

use longshore_cli::ServeArgs;
use longshore_hostile::{cases, mutated, text};
use proptest::prelude::*;

use super::{DEFAULTS, Settings, SettingsError};

const TOKENS: &[&[u8]] = &[
    b"=",
    b"[",
    b"]",
    b"[[",
    b"\"",
    b"\"\"\"",
    b"'",
    b"#",
    b"\n",
    b"{",
    b"}",
    b".",
    b",",
    b"-",
    b"0x",
    b"1e9",
    b"inf",
    b"nan",
    b"9223372036854775807",
    b"-1",
    b"0",
    b"true",
    b"1979-05-27",
    b"\\u0000",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
];

/// The lines of the reference that set a value.
fn lines() -> Vec<&'static str> {
    DEFAULTS.lines().map(|line| line.trim_start_matches("# ")).filter(|line| line.contains(" = ")).collect()
}

/// Values of any type, including extremes.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        prop::sample::select(vec![
            "0",
            "1",
            "9223372036854775807",
            "4294967295",
            "true",
            "\"\"",
            "\"off\"",
            "[]",
            "{}",
            "1.5"
        ])
        .prop_map(str::to_owned),
        "\"[ -!#-\\[\\]-~]{0,20}\"",
    ]
}

/// A file of known and unknown settings.
fn file() -> impl Strategy<Value = String> {
    let name = prop::sample::select(lines()).prop_map(|line| line.split(" = ").next().unwrap().to_owned());
    let name = prop_oneof![9 => name, 1 => "[a-z_.]{1,12}"];
    let table = prop::sample::select(vec!["", "", "[rate_limits]\n", "[rate_limits.run]\n", "[x]\n"]);
    let line = (name, value()).prop_map(|(name, value)| format!("{name} = {value}\n"));
    (prop::collection::vec(line, 0..4), table).prop_map(|(lines, table)| format!("{table}{}", lines.concat()))
}

fn load(file: &[u8], environment: Vec<(String, String)>) -> Result<Settings, SettingsError> {
    let kept = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(kept.path(), file).unwrap();
    let args = ServeArgs { config: Some(kept.path().to_owned()), ..ServeArgs::default() };
    Settings::load(&args, environment)
}

fn holds(loaded: Result<Settings, SettingsError>) -> Result<(), TestCaseError> {
    match loaded {
        Ok(settings) => {
            // Accepted settings can be converted for all parts.
            let _ = (settings.http(), settings.engine(), settings.webhooks());
            let _ = (
                settings.workers("http://h".to_owned(), Vec::new()),
                settings.server_url(),
                settings.shutdown_grace(),
            );
        }
        Err(error) => {
            let text = error.to_string();
            prop_assert!(!text.is_empty() && !text.contains('\n') && text.len() < 2_000, "{text:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn files_of_any_bytes(file in longshore_hostile::bytes()) {
        holds(load(&file, Vec::new()))?;
    }

    #[test]
    fn the_reference_spoiled(file in mutated(Just(DEFAULTS), TOKENS)) {
        holds(load(&file, Vec::new()))?;
    }

    #[test]
    fn any_values_for_any_names(file in prop_oneof![file().prop_map(String::into_bytes), mutated(file(), TOKENS)]) {
        holds(load(&file, Vec::new()))?;
    }

    #[test]
    fn any_environment(pairs in prop::collection::vec((prop_oneof![prop::sample::select(lines()).prop_map(|line| line.split(" = ").next().unwrap().to_uppercase()), "[A-Z_]{1,12}"], prop_oneof![value(), text()]), 0..4)) {
        let environment = pairs.into_iter().map(|(name, value)| (format!("LONGSHORE_{name}"), value)).collect();
        holds(load(b"", environment))?;
    }
}
