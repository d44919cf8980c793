//! Timestamps in payloads, from which the receiver computes the latency.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
const MARK: &str = "\"at_us\":";

/// Returns a JSON object with the timestamp.
pub fn stamp(at: Instant) -> String {
    format!("{{{MARK}{}}}", at.saturating_duration_since(*EPOCH).as_micros())
}

/// Returns the timestamps in a text, in order.
pub fn stamps(text: &[u8]) -> impl Iterator<Item = Instant> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.split(MARK).skip(1).filter_map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        Some(*EPOCH + Duration::from_micros(rest[..digits].parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_the_way() {
        LazyLock::force(&EPOCH);
        let (one, two) = (*EPOCH + Duration::from_micros(5), *EPOCH + Duration::from_secs(9));
        let text = format!("[{{\"output\":{}}},{}]", stamp(one), stamp(two));
        assert_eq!(stamps(text.as_bytes()).collect::<Vec<_>>(), [one, two]);
        assert_eq!(stamps(b"{\"at_us\":}").count(), 0);
    }
}
