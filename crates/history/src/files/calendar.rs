//! The dates in names of files, in UTC.

use jiff::civil::{Date, date};
use jiff::{Span, ToSpan as _};

/// The date of a day since 1970-01-01. A day after the last one that the calendar has is that last one.
fn civil(day: u64) -> Date {
    let days = i64::try_from(day).ok().and_then(|day| Span::new().try_days(day).ok());
    date(1970, 1, 1).saturating_add(days.unwrap_or_else(|| 7_000_000.days()))
}

/// The date of a day since 1970-01-01, such as `2030-01-31`.
pub(super) fn day_name(day: u64) -> String {
    civil(day).to_string()
}

/// The month of a day since 1970-01-01, such as `2030-01`.
pub(super) fn month_name(day: u64) -> String {
    let date = civil(day);
    format!("{:04}-{:02}", date.year(), date.month())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let dates = [(0, "1970-01-01"), (59, "1970-03-01"), (19_782, "2024-02-29"), (21_945, "2030-01-31")];
        for (day, date) in dates {
            assert_eq!(day_name(day), date);
            assert_eq!(month_name(day), date[..7]);
        }
        assert_eq!(day_name(u64::MAX), "9999-12-31");
    }
}
