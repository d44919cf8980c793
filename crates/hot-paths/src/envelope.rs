//! The hot path of a submit's body: check it and extract the members for the worker.

use std::hint::black_box;

use bytes::Bytes;
use longshore_http::members_of_submit;

/// Returns a usual request, with every member that the server reads.
pub fn small() -> Bytes {
    Bytes::from_static(
        br#"{"input":{"prompt":"a lighthouse in the fog, oil on canvas","steps":30,"seed":7},"webhook":"https://example.com/hooks/done?token=abc","policy":{"executionTimeout":60000,"ttl":3600000,"lowPriority":false}}"#,
    )
}

/// Returns a request with an input of 64 KiB, as of an image in base64.
pub fn large() -> Bytes {
    Bytes::from(format!(r#"{{"input":{{"image":"{}"}}}}"#, "iVBORw0K".repeat(8 * 1024)))
}

/// Parses the body `times` times.
pub fn parse(body: &Bytes, times: u64) {
    for _ in 0..times {
        let members = members_of_submit(black_box(body));
        assert!(black_box(members).is_some(), "the body is valid");
    }
}
