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

/// The moment that a text names, in any offset from UTC; parts of a millisecond are dropped. None if it names none
/// from 1970 on.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Millis> {
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    let (date, time) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ')
        || date.as_bytes()[4] != b'-'
        || date.as_bytes()[7] != b'-'
    {
        return None;
    }
    let (year, month, day) = (number(&date[..4])?, number(date.get(5..7)?)?, number(date.get(8..)?)?);
    let days = days_since_1970(year, month, day)?;
    if time.as_bytes().get(2) != Some(&b':') || time.as_bytes().get(5) != Some(&b':') {
        return None;
    }
    let (hour, minute) = (number(time.get(..2)?)?, number(time.get(3..5)?)?);
    let second = number(time.get(6..8)?)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = time.get(8..)?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_at);
    let ms = match fraction.strip_prefix('.') {
        Some(digits) if !digits.is_empty() => {
            // A number of any length; three digits of it are milliseconds.
            digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            number(&format!("{digits:0<3}")[..3])?
        }
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    let ahead_minutes = offset_minutes(zone)?;
    let local_ms = ((days * 24 + hour) * 60 + minute) * 60_000 + second.min(59) * 1_000 + ms;
    u64::try_from(local_ms as i64 - ahead_minutes * 60_000).ok().map(Millis)
}

/// How far a zone is ahead of UTC.
fn offset_minutes(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let part = |text: &str, max: i64| {
        (text.len() == 2).then(|| text.parse().ok())?.filter(|number| (0..=max).contains(number))
    };
    let minutes = part(hours, 23)? * 60 + part(minutes, 59)?;
    match zone.as_bytes()[0] {
        b'+' => Some(minutes),
        b'-' => Some(-minutes),
        _ => None,
    }
}

/// The inverse of [`civil`]; none for a day that is not in the calendar, or before 1970.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let (year_from_march, month_from_march) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year_from_march / 400, year_from_march % 400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    (civil(days) == (year, month, day)).then_some(days)
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
    fn what_is_written_can_be_read_again() {
        for days in (0..80_000).step_by(17) {
            let at = Millis(days * DAY_MS + 12_345_678);
            assert_eq!(parse_rfc3339(&rfc3339(at)), Some(at));
        }
    }

    #[test]
    fn other_spellings_of_a_moment_are_read() {
        let noon = Some(Millis(1_738_324_800_000));
        for text in [
            "2025-01-31T12:00:00Z",
            "2025-01-31t12:00:00z",
            "2025-01-31 12:00:00.000+00:00",
            "2025-01-31T14:30:00+02:30",
            "2025-01-31T02:00:00-10:00",
            "2025-01-31T12:00:00.0009Z",
        ] {
            assert_eq!(parse_rfc3339(text), noon, "{text}");
        }
        assert_eq!(parse_rfc3339("2025-01-31T12:00:00.5Z"), noon.map(|at| at + 500));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "x",
            "2025-01-31",
            "2025-01-31T12:00:00",
            "2025-02-30T12:00:00Z",
            "2025-13-01T12:00:00Z",
            "2025-00-01T12:00:00Z",
            "2025-01-31T24:00:00Z",
            "2025-01-31T12:60:00Z",
            "2025-01-31T12:00:61Z",
            "2025-01-31T12:00:00.Z",
            "2025-01-31T12:00:00.xZ",
            "2025-01-31T12:00:00+2:00",
            "2025-01-31T12:00:00+24:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "+025-01-31T12:00:00Z",
            "2025-01-31T+1:00:00Z",
            "2025-01-31T12:00:00+-1:00",
            "2025-01-31T12:00:00Zx",
            "ä025-01-31T12:00:00Z",
            "2025-01-3äT12:00:00Z",
            "2025-01-31T12:00:00.ääZ",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text: String, spoiled in "[0-9TZ:. +-ä]{0,30}", rest in "[0-9.ä+:-]{0,5}Z") {
            let _ = (parse_rfc3339(&text), parse_rfc3339(&spoiled));
            let _ = parse_rfc3339(&format!("2030-01-31T12:00:00{rest}"));
        }
    }

    #[test]
    fn the_end_of_time_is_survived() {
        assert!(rfc3339(Millis::MAX).ends_with('Z'));
    }
}
