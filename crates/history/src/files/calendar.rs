//! The dates in names of files, in UTC.

/// The year, month and day of a day since 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn civil(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The date of a day since 1970-01-01, such as `2030-01-31`.
pub(super) fn day_name(day: u64) -> String {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The month of a day since 1970-01-01, such as `2030-01`.
pub(super) fn month_name(day: u64) -> String {
    let (year, month, _) = civil(day);
    format!("{year:04}-{month:02}")
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
    }
}
