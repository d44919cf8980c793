//! Points in time as answers show them.

use longshore_model::Millis;

const DAY_MS: u64 = 86_400_000;

/// The time in UTC, to the millisecond: `2026-01-31T23:59:59.000Z`.
pub(crate) fn rfc3339(at: Millis) -> String {
    let (days, ms) = (at.0 / DAY_MS, at.0 % DAY_MS);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year; 400 of them are 146 097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let since_march_0000 = days + 719_468;
    let (era, day_of_era) = (since_march_0000 / 146_097, since_march_0000 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_are_written_right() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Millis(ms)), text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut before = civil(0);
        for days in 1..146_097 {
            let (year, month, day) = civil(days);
            let follows = (year, month, day) == (before.0, before.1, before.2 + 1)
                || (day == 1
                    && ((year, month) == (before.0, before.1 + 1) || (year, month) == (before.0 + 1, 1)));
            assert!(follows, "{before:?} then {:?}", (year, month, day));
            before = (year, month, day);
        }
    }

    #[test]
    fn the_end_of_time_is_survived() {
        assert!(rfc3339(Millis::MAX).ends_with('Z'));
    }
}
