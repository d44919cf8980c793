//! Times, counts and rates as people write them.

use alloc::format;
use alloc::string::{String, ToString as _};

use super::FinishRate;

/// A time span: `34 ms`, `0.5 s`, `12 s`, `3 min`, `2 h`, `4 days`.
pub(super) fn span(ms: u64) -> String {
    let s = ms / 1_000;
    match s {
        0 if ms < 100 => format!("{ms} ms"),
        0..10 => {
            let tenths = (ms + 50) / 100;
            let (s, tenths) = (tenths / 10, tenths % 10);
            if tenths == 0 { format!("{s} s") } else { format!("{s}.{tenths} s") }
        }
        10..120 => format!("{s} s"),
        120..7_200 => format!("{} min", s / 60),
        7_200..172_800 => format!("{} h", s / 3_600),
        _ => format!("{} days", s / 86_400),
    }
}

/// A count with its noun: `1 job`, `2 jobs`.
pub(super) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// How many jobs end, as a clause: `2.1 finish a second`.
pub(super) fn finishes(rate: &FinishRate) -> String {
    let per_hour = rate.per_hour;
    match per_hour {
        0 => "none has finished in the last 5 min".to_string(),
        1..120 => format!("{per_hour} finish an hour"),
        120..7_200 => format!("{} finish a minute", per_hour / 60),
        _ => format!("{}.{} finish a second", per_hour / 3_600, per_hour % 3_600 / 360),
    }
}

/// The first line of a text, without a full stop and without an announcement of the lines after it.
pub(super) fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default().trim_end_matches(['.', ':', ';']);
    line.strip_suffix("; its last log lines").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_one_unit() {
        let spans = [0, 495, 1_200, 9_999, 10_000, 119_999, 180_000, 7_200_000, 400_000_000].map(span);
        assert_eq!(spans, ["0 ms", "0.5 s", "1.2 s", "10 s", "10 s", "119 s", "3 min", "2 h", "4 days"]);
    }

    #[test]
    fn a_rate_has_the_unit_that_gives_a_readable_number() {
        let of = |per_hour| finishes(&FinishRate { per_hour, ..FinishRate::default() });
        assert_eq!(of(0), "none has finished in the last 5 min");
        assert_eq!(of(60), "60 finish an hour");
        assert_eq!(of(180), "3 finish a minute");
        assert_eq!(of(7_560), "2.1 finish a second");
    }
}
