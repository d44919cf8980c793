//! The trace that a request or a job is part of, as W3C Trace Context writes it.

use core::fmt;

/// The flag of a caller that records its trace.
const SAMPLED: u8 = 1;

/// A place in a trace: what a `traceparent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of the trace, not all zeros.
    pub trace: [u8; 16],
    /// The id of the span under which further spans belong, not all zeros.
    pub span: [u8; 8],
    /// The flags; bit 0 is set if the trace is recorded.
    pub flags: u8,
}

impl TraceContext {
    /// The length of the stored form, in bytes.
    pub const STORED_BYTES: usize = 25;

    /// Returns a context of this version's flags.
    pub fn new(trace: [u8; 16], span: [u8; 8], is_sampled: bool) -> Self {
        Self { trace, span, flags: if is_sampled { SAMPLED } else { 0 } }
    }

    /// Reads `<version>-<trace, 32 digits>-<span, 16 digits>-<flags>`, and more from later versions; `None` for any other
    /// text.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = text.split(|byte| *byte == b'-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let (trace, span, flags) = (bytes(parts.next()?)?, bytes(parts.next()?)?, bytes::<1>(parts.next()?)?);
        let is_whole = version != [0] || parts.next().is_none();
        (version != [0xff] && is_whole).then_some(Self { trace, span, flags: flags[0] })?.checked()
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The stored form: the bytes of the trace, of the span, and the flags.
    pub fn to_stored(self) -> [u8; Self::STORED_BYTES] {
        let mut stored = [0; Self::STORED_BYTES];
        stored[..16].copy_from_slice(&self.trace);
        stored[16..24].copy_from_slice(&self.span);
        stored[24] = self.flags;
        stored
    }

    /// Reads the stored form; `None` if an id is all zeros.
    pub fn from_stored(stored: [u8; Self::STORED_BYTES]) -> Option<Self> {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.copy_from_slice(&stored[..16]);
        span.copy_from_slice(&stored[16..24]);
        Self { trace, span, flags: stored[24] }.checked()
    }

    fn checked(self) -> Option<Self> {
        (self.trace != [0; 16] && self.span != [0; 8]).then_some(self)
    }
}

/// The `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", Digits(&self.trace), Digits(&self.span), self.flags)
    }
}

/// Bytes as hexadecimal digits in lower case, two for each byte.
struct Digits<'a>(&'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads bytes from hexadecimal digits in lower case, two for each byte.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString as _};

    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_written_as_it_was_read_and_stored() {
        let context = TraceContext::parse(TEXT.as_bytes()).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), TEXT);
        assert_eq!(TraceContext::from_stored(context.to_stored()), Some(context));
        assert_eq!(TraceContext::from_stored([0; TraceContext::STORED_BYTES]), None);
        assert!(!TraceContext::new(context.trace, context.span, false).is_sampled());
    }

    #[test]
    fn later_versions_may_have_more_parts() {
        let later = TEXT.replacen("00-", "cc-", 1);
        for text in [later.clone(), later + "-more"] {
            let context = TraceContext::parse(text.as_bytes()).unwrap();
            assert_eq!(context.to_string(), TEXT);
        }
    }

    #[test]
    fn other_texts_are_no_context() {
        let zeros = |id: &str| TEXT.replace(id, &"0".repeat(id.len()));
        let bad: [String; 9] = [
            String::new(),
            "00".into(),
            TEXT[..54].into(),
            TEXT.to_string() + "0",
            TEXT.to_string() + "-more",
            TEXT.replacen("00-", "ff-", 1),
            TEXT.to_uppercase(),
            zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            zeros("00f067aa0ba902b7"),
        ];
        for text in bad {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
    }
}
