//! Counts, sizes, spans and times as people write them. Only for text, never for JSON.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::output::cell;
use crate::screen::span;

/// The form of dates with times.
pub(crate) const CLOCK: &str = "%Y-%m-%d %H:%M:%SZ";

/// Returns a count with its noun: `1 job`, `2 jobs`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns a number of bytes with a decimal unit: `512 bytes`, `3.4 kB`, `79 GB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1_000 {
        return count(bytes, "byte");
    }
    let mut number = bytes as f64 / 1_000.0;
    let mut units = ["kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    // From 999.5 on, the rounded number would have four digits.
    while number >= 999.5
        && let Some(next) = units.next()
    {
        number /= 1_000.0;
        unit = next;
    }
    let digits = usize::from(number < 9.95);
    format!("{number:.digits$} {unit}")
}

/// Returns how long ago a time is, or in how long: `3 days ago`, `in 5 h`. Long ago is in days, too.
pub(crate) fn age(time: Timestamp) -> String {
    let now = Timestamp::now();
    let days = (now.as_second() - time.as_second()) / 86_400;
    match days {
        30.. => format!("{days} days ago"),
        ..=-30 => format!("in {} days", -days),
        _ => relative(time, now),
    }
}

/// Returns a time in ms since 1970 as date and time in UTC; `None` if no calendar has it.
pub(crate) fn at_clock(ms: i64) -> Option<String> {
    let time = Timestamp::from_millisecond(ms).ok()?;
    Some(time.strftime(CLOCK).to_string())
}

/// Returns a sentence with its age behind each time in it.
pub(crate) fn with_ages(text: &str) -> String {
    let aged = |word: &str| {
        let time = word.trim_end_matches([':', ',', ';', '.']);
        let age = time.parse().ok().map(|time| format!(" ({})", age(time)));
        format!("{time}{}{}", age.unwrap_or_default(), &word[time.len()..])
    };
    text.split(' ').map(aged).collect::<Vec<_>>().join(" ")
}

/// Returns what a person reads in place of a number whose name lacks the unit; `None` for any other value.
pub(crate) fn with_unit(name: &str, value: &Value) -> Option<String> {
    let number = value.as_u64()?;
    match name {
        "delayTime" | "executionTime" => Some(span(Duration::from_millis(number))),
        "idleTimeout" | "idleTimeoutMax" if number < 60 => Some(format!("{number} s")),
        "idleTimeout" | "idleTimeoutMax" => {
            Some(format!("{number} s ({})", span(Duration::from_secs(number))))
        }
        _ => None,
    }
}

/// Returns what a person reads in a value of the API whose name has a unit: `createdAt` is a time, `…Ms` and `…Bytes`
/// are numbers. `None` if the value says the same.
pub(crate) fn in_words(name: &str, value: &Value) -> Option<String> {
    let is = |unit: &str| name.ends_with(unit);
    match value {
        Value::String(text) if is("At") || is("Since") => {
            text.parse::<Timestamp>().ok().map(|time| relative(time, Timestamp::now()))
        }
        Value::Number(ms) if is("Ms") => {
            ms.as_u64().filter(|ms| *ms >= 1_000).map(|ms| span(Duration::from_millis(ms)))
        }
        Value::Number(bytes) if is("Bytes") => bytes.as_u64().filter(|bytes| *bytes >= 1_000).map(size),
        _ => None,
    }
}

/// A table cell with a number of milliseconds.
pub(crate) fn ms_cell(value: &Value) -> String {
    value.as_u64().map_or_else(|| cell(value), |ms| span(Duration::from_millis(ms)))
}

/// A table cell with a number of bytes.
pub(crate) fn size_cell(value: &Value) -> String {
    value.as_u64().map_or_else(|| cell(value), size)
}

/// A table cell with a ratio: 0.25 is `25 %`.
pub(crate) fn percent_cell(value: &Value) -> String {
    value.as_f64().map_or_else(|| cell(value), |ratio| format!("{:.0} %", ratio * 100.0))
}

/// A table cell with a time, relative to now.
pub(crate) fn time_cell(value: &Value) -> String {
    let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    time.map_or_else(|| cell(value), |time| relative(time, Timestamp::now()))
}

/// Returns `2 min ago` or `in 5 h`. Times more than 30 days away are dates.
fn relative(time: Timestamp, now: Timestamp) -> String {
    let s = now.as_second() - time.as_second();
    let amount = match s.unsigned_abs() {
        0 => return "now".to_owned(),
        s @ 1..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..86_400 => format!("{} h", s / 3_600),
        s @ 86_400..2_592_000 => count(s / 86_400, "day"),
        _ => return time.strftime("%Y-%m-%d").to_string(),
    };
    if s > 0 { format!("{amount} ago") } else { format!("in {amount}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_have_their_unit() {
        assert_eq!([count(0, "job"), count(1, "job"), count(2, "job")], ["0 jobs", "1 job", "2 jobs"]);
        let sizes = [1, 999, 1_000, 9_949, 9_960, 999_499, 999_600, 79_000_000_000, 5_000_000_000_000_000];
        let shown =
            ["1 byte", "999 bytes", "1.0 kB", "9.9 kB", "10 kB", "999 kB", "1.0 MB", "79 GB", "5000 TB"];
        assert_eq!(sizes.map(size), shown);
    }

    #[test]
    fn values_with_a_unit_in_their_name_have_words() {
        let words = |name: &str, value: Value| in_words(name, &value);
        assert_eq!(words("startPatienceMs", 600_000.into()).as_deref(), Some("10 min"));
        assert_eq!(words("startMs", 535.into()), None);
        assert_eq!(words("memoryBytes", 16_777_216.into()).as_deref(), Some("17 MB"));
        assert_eq!(words("createdAt", "2001-01-02T03:04:05.678Z".into()).as_deref(), Some("2001-01-02"));
        assert_eq!(words("createdAt", "at noon".into()), None);
        assert_eq!(words("name", "2001-01-02T03:04:05.678Z".into()), None);
        assert_eq!(words("workersMax", 600_000.into()), None);
        let shown = |name: &str, number: u64| with_unit(name, &number.into());
        assert_eq!(shown("delayTime", 491).as_deref(), Some("491 ms"));
        assert_eq!(shown("executionTime", 72_000).as_deref(), Some("1 min 12 s"));
        assert_eq!(shown("idleTimeout", 7).as_deref(), Some("7 s"));
        assert_eq!(shown("idleTimeout", 300).as_deref(), Some("300 s (5 min)"));
        assert_eq!(shown("workersMax", 3), None);
        assert_eq!(with_unit("delayTime", &Value::Null), None);
    }

    #[test]
    fn a_time_in_a_sentence_has_its_age() {
        let said = with_ages("it drains since 2001-01-02T03:04:05Z: it hands out none. 7 left");
        let (before, after) = said.split_once(" (").unwrap();
        assert_eq!(before, "it drains since 2001-01-02T03:04:05Z");
        assert!(after.ends_with(" days ago): it hands out none. 7 left"), "{said}");
        assert_eq!(with_ages("no time: 12, 2026."), "no time: 12, 2026.");
    }

    #[test]
    fn times_are_relative_to_now() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        for (time, shown) in [
            ("2026-03-10T12:00:00Z", "now"),
            ("2026-03-10T11:59:30Z", "30 s ago"),
            ("2026-03-10T11:57:50.5Z", "2 min ago"),
            ("2026-03-10T17:00:00Z", "in 5 h"),
            ("2026-03-09T11:00:00Z", "1 day ago"),
            ("2025-01-02T11:00:00Z", "2025-01-02"),
        ] {
            assert_eq!(relative(time.parse().unwrap(), now), shown, "{time}");
        }
        assert_eq!([time_cell, size_cell, percent_cell].map(|cell| cell(&Value::Null)), ["-", "-", "-"]);
        assert_eq!([percent_cell(&Value::from(1.254)), size_cell(&Value::from(3_400))], ["125 %", "3.4 kB"]);
        assert_eq!(ms_cell(&Value::from(2_340)), "2.3 s");
    }
}
