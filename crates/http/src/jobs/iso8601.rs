//! Points in time as people and their tools read them.

use longshore_model::Millis;

const DAY_MS: u64 = 86_400_000;

/// ISO 8601 in UTC with milliseconds: `2026-11-21T02:51:48.007Z`.
pub(super) fn text(time: Millis) -> String {
    let (year, month, day) = civil(time.0 / DAY_MS);
    let ms = time.0 % DAY_MS;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Year, month and day of a number of days since 1970-01-01 in the Gregorian calendar.
///
/// Years are counted from March here: then the leap day is a year's last day, and months have lengths that one
/// linear formula gives.
fn civil(days: u64) -> (u64, u64, u64) {
    // From 0000-03-01, in eras of 400 years, which all have the same length.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_known_moments() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_229_508_007, "2026-11-21T02:51:48.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(text(Millis(ms)), expected);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = civil(0);
        for days in 1..60_000 {
            let day = civil(days);
            let next = day == (before.0, before.1, before.2 + 1)
                || day == (before.0, before.1 + 1, 1)
                || (before.1, before.2) == (12, 31) && day == (before.0 + 1, 1, 1);
            assert!(next, "{before:?} then {day:?}");
            before = day;
        }
    }
}
