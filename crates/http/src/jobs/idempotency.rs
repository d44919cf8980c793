//! The `Idempotency-Key` header: two submits with the same key and body are one job.

use http::HeaderMap;
use longshore_model::Idempotency;
use longshore_model::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use ring::digest::{SHA256, digest};

use crate::wire::IDEMPOTENCY_KEY;
use crate::wire::api_error::ApiError;

/// The key of a request, if there is one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<Box<str>>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&text.len()) => Ok(Some(text.into())),
        _ => Err(ApiError::bad_request(
            "bad_idempotency_key",
            format!("`Idempotency-Key` must be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} printable ASCII characters"),
        )),
    }
}

/// Returns the stored form of the header: the key, and the first half of the SHA-256 of the body.
pub(super) fn of(key: Box<str>, body: &[u8]) -> Idempotency {
    let mut fingerprint = [0; 16];
    for (to, from) in fingerprint.iter_mut().zip(digest(&SHA256, body).as_ref()) {
        *to = *from;
    }
    Idempotency { key, fingerprint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_key(text: &str) -> HeaderMap {
        HeaderMap::from_iter([("idempotency-key".parse().unwrap(), text.parse().unwrap())])
    }

    #[test]
    fn a_key_has_1_to_255_printable_characters() {
        assert_eq!(key(&HeaderMap::new()).unwrap(), None);
        assert_eq!(key(&with_key("a b")).unwrap().as_deref(), Some("a b"));
        let longest = "k".repeat(255);
        assert_eq!(key(&with_key(&longest)).unwrap().as_deref(), Some(longest.as_str()));
        for bad in ["", &"k".repeat(256), "schlüssel"] {
            assert_eq!(key(&with_key(bad)).unwrap_err().code(), "bad_idempotency_key", "{bad}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_bodys() {
        let print = |body: &[u8]| of("k".into(), body).fingerprint;
        assert_eq!(print(b"{}"), print(b"{}"));
        assert_ne!(print(b"{}"), print(b"{ }"));
        // The first half of the SHA-256 of an empty text.
        assert_eq!(print(b"")[..4], [0xe3, 0xb0, 0xc4, 0x42]);
    }
}
