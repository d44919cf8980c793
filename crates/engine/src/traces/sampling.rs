//! Which traces are sent: as the client says, else a share of all.

/// The number of random bits of a trace's id: its last seven bytes (W3C Trace Context, level 2).
const RANDOM_BITS: u32 = 56;

/// Which traces are sent. The decision follows from the trace's id, so that every part of a trace decides alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Traces whose random bits are at least this number are sent.
    least: u64,
}

impl Sampling {
    /// Sends this share of the traces of clients that name none; `ratio` is from 0 to 1.
    pub fn of_ratio(ratio: f64) -> Self {
        let all = 1_u64 << RANDOM_BITS;
        let skipped = (1.0 - ratio.clamp(0.0, 1.0)) * all as f64;
        Self { least: skipped.round() as u64 }
    }

    /// Whether the trace with this id is sent, if the client names no trace.
    pub(super) fn takes(self, trace: &[u8; 16]) -> bool {
        let mut random = [0; 8];
        random[1..].copy_from_slice(&trace[9..]);
        u64::from_be_bytes(random) >= self.least
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::{JobId, Millis};

    use super::*;

    /// The number of sent traces among 10 000 jobs with random ids.
    fn sent(ratio: f64) -> usize {
        let sampling = Sampling::of_ratio(ratio);
        let random = |number: u64| {
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xd6e8_feb8_6659_fd93)
        };
        let jobs = (0..10_000).map(|number| JobId::mint_at(Millis(1_000).0 << 12, random(number), false));
        jobs.filter(|job| sampling.takes(&job.raw())).count()
    }

    #[test]
    fn a_share_of_the_jobs_is_sent() {
        assert_eq!((sent(0.0), sent(1.0)), (0, 10_000));
        for (ratio, share) in [(0.5, 5_000), (0.1, 1_000), (0.01, 100)] {
            let sent = sent(ratio);
            assert!(sent.abs_diff(share) <= 3 * share.isqrt().max(50), "{ratio}: {sent}");
        }
    }

    #[test]
    fn a_larger_share_has_the_traces_of_a_smaller_one() {
        let trace = [0xff; 16];
        assert!(Sampling::of_ratio(0.000_001).takes(&trace));
        assert!(!Sampling::of_ratio(0.0).takes(&trace));
    }
}
