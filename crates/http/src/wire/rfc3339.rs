//! Points in time as responses show them.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use longshore_model::Millis;

/// The origin of [`Millis`]. Times are computed as `DateTime`: `jiff::Timestamp` ends a day earlier, and clients send
/// 9999-12-31 for "never".
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// The largest offset from UTC (RFC 3339, section 5.6).
const OFFSET_SECONDS_MAX: i32 = 86_399;

/// The time in UTC, to the millisecond: `2026-01-31T23:59:59.000Z`. Times after the year 9999 become its last moment.
pub(crate) fn rfc3339(at: Millis) -> String {
    let since = SignedDuration::from_millis(i64::try_from(at.0).unwrap_or(i64::MAX));
    format!("{:.3}Z", EPOCH.saturating_add(since))
}

/// Parses a time with any offset from UTC; parts of a millisecond are dropped. `None` if the text is no time from 1970
/// on.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Millis> {
    let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.time_zone_annotation().is_none())?;
    let offset = pieces.to_numeric_offset().map(Offset::seconds)?;
    let local = pieces.date().to_datetime(pieces.time()?).duration_since(EPOCH);
    let since = local - SignedDuration::from_secs(offset.into());
    let is_moment = offset.abs() <= OFFSET_SECONDS_MAX && !since.is_negative();
    is_moment.then(|| u64::try_from(since.as_millis()).ok().map(Millis))?
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
            (1_767_225_599_007, "2025-12-31T23:59:59.007Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(Millis(ms)), text);
        }
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let last = Millis(253_402_300_799_999);
        assert_eq!(parse_rfc3339(&rfc3339(last)), Some(last));
        for days in (0..80_000).step_by(17) {
            let at = Millis(days * 86_400_000 + 12_345_678);
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
            "2025-01-31T12:00:00Z[Asia/Tokyo]",
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
        assert_eq!(rfc3339(Millis::MAX), "9999-12-31T23:59:59.999Z");
    }
}
