//! Counts, sizes, spans and times as people write them. Only for text, never for JSON.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::output::cell;
use crate::screen::span;

/// Returns a count with its noun: `1 job`, `2 jobs`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns a number of bytes with a decimal unit: `512 bytes`, `3.4 kB`, `79 GB`.
pub(crate) fn size(bytes: u64) -> String {
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

/// A table cell with a number of bytes.
pub(crate) fn size_cell(value: &Value) -> String {
    value.as_u64().map_or_else(|| cell(value), size)
}

/// A table cell with a number of milliseconds.
pub(crate) fn ms_cell(value: &Value) -> String {
    value.as_u64().map_or_else(|| cell(value), |ms| span(Duration::from_millis(ms)))
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
        assert_eq!(time_cell(&Value::Null), "-");
        assert_eq!(ms_cell(&Value::from(2_340)), "2.3 s");
    }
}
