//! The hot path of a submit's body: checks it and extracts the members for the worker.

use std::hint::black_box;

use bytes::Bytes;
use longshore_envelope::{Envelope, EnvelopeError};

/// Returns the body of a small submit with `input`, `webhook` and `policy`.
pub fn small() -> Bytes {
    Bytes::from_static(
        br#"{"input":{"prompt":"a lighthouse in the fog, oil on canvas","steps":30,"seed":7},"webhook":"https://example.com/hooks/done?token=abc","policy":{"executionTimeout":60000,"ttl":3600000,"lowPriority":false}}"#,
    )
}

/// Returns the body of a submit with an input of 64 KiB, like an image in base64.
pub fn large() -> Bytes {
    Bytes::from(format!(r#"{{"input":{{"image":"{}"}}}}"#, "iVBORw0K".repeat(8 * 1024)))
}

/// Parses the body `times` times. Panics if it is invalid.
pub fn parse(body: &Bytes, times: u64) {
    for _ in 0..times {
        let envelope: Result<Envelope, EnvelopeError> =
            longshore_envelope::parse(black_box(body), |_| Ok(None), |_| true);
        assert!(black_box(envelope).is_ok(), "the body is valid");
    }
}
