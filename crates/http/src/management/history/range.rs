//! The time range of a request, and its step.

use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::parse_rfc3339;

/// The longest time range: what hours are kept for.
pub(super) const RANGE_MS_MAX: u64 = 400 * 86_400_000;
/// The most points of a series, and as many as there are by default.
const POINTS_MAX: u64 = 1_500;
const POINTS_USUAL: u64 = 300;
const HOUR_MS: u64 = 3_600_000;

/// Steps that divide an hour or a day, in ms.
const STEPS_MS: [u64; 17] = [
    2_000,
    4_000,
    10_000,
    20_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    HOUR_MS,
    2 * HOUR_MS,
    4 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
    24 * HOUR_MS,
];

/// A time range in ms since 1970, and its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) step_ms: u64,
}

impl Range {
    /// The range that a query asks for; the last hour by default.
    pub(super) fn of(query: &Query, now: u64) -> Result<Self, ApiError> {
        let to = time(query, "to")?.unwrap_or(now).min(now);
        let last = query.integer("last", 1, RANGE_MS_MAX)?;
        let from = match (time(query, "from")?, last) {
            (Some(_), Some(_)) => {
                return Err(ApiError::bad_request("bad_parameter", "send `from` or `last`, not both"));
            }
            (from, last) => from.unwrap_or(to.saturating_sub(last.unwrap_or(HOUR_MS))),
        };
        if from >= to {
            return Err(ApiError::bad_request("bad_parameter", "`from` must be before `to` and before now"));
        }
        if to - from > RANGE_MS_MAX {
            return Err(ApiError::bad_request("bad_parameter", "the time range must have at most 400 days"));
        }
        let asked = query.integer("step", 1, RANGE_MS_MAX)?;
        let points = if asked.is_some() { POINTS_MAX } else { POINTS_USUAL };
        let shortest = ((to - from).div_ceil(points)).max(asked.unwrap_or(0));
        let usual = STEPS_MS.into_iter().find(|step| *step >= shortest);
        // A step that the query names is taken as it is, if it is long enough.
        let step_ms = asked
            .filter(|asked| *asked >= shortest)
            .or(usual)
            .unwrap_or(24 * HOUR_MS * shortest.div_ceil(24 * HOUR_MS));
        Ok(Self { from, to, step_ms })
    }

    /// The most points of a series.
    pub(super) fn points(self) -> usize {
        (self.to - self.from).div_ceil(self.step_ms) as usize + 1
    }
}

fn time(query: &Query, name: &str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let time = parse_rfc3339(text).ok_or_else(|| {
        ApiError::bad_request("bad_parameter", format!("`{name}` must be a time like 2026-01-31T00:00:00Z"))
    })?;
    Ok(Some(time.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_900_000_000_000;

    fn range(text: &str) -> Result<Range, ApiError> {
        Range::of(&Query::of(&format!("/x?{text}").parse().unwrap()).unwrap(), NOW)
    }

    #[test]
    fn the_step_follows_from_the_length() {
        assert_eq!(range("").unwrap(), Range { from: NOW - HOUR_MS, to: NOW, step_ms: 20_000 });
        for (minutes, step_ms) in
            [(5, 2_000), (15, 4_000), (120, 30_000), (1_440, 300_000), (43_200, 4 * HOUR_MS)]
        {
            let from = crate::wire::rfc3339::rfc3339(longshore_model::Millis(NOW - minutes * 60_000));
            assert_eq!(range(&format!("from={from}")).unwrap().step_ms, step_ms, "{minutes} min");
            let finest = range(&format!("from={from}&step=1")).unwrap();
            assert!(finest.points() <= 1_501 && finest.step_ms <= step_ms, "{finest:?}");
        }
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for text in [
            "from=tomorrow",
            "from=2029-01-01T00:00:00Z&last=1000",
            "last=0",
            "from=2035-01-01T00:00:00Z",
            "step=0",
            "from=1990-01-01T00:00:00Z",
            "to=1969-01-01T00:00:00Z",
        ] {
            assert_eq!(range(text).unwrap_err().code(), "bad_parameter", "{text}");
        }
    }
}
