//! Builds requests of clients, workers and the operator, and reads single members of responses.

use bytes::Bytes;

use crate::observation::HttpRequest;

/// A `GET` request without a body.
pub fn get(path: String, credential: &str) -> HttpRequest {
    HttpRequest {
        method: "GET",
        path,
        headers: vec![("authorization", credential.to_owned())],
        body: Bytes::new(),
    }
}

/// A `POST` request with a body.
pub fn post(path: String, credential: &str, body: impl Into<Bytes>) -> HttpRequest {
    HttpRequest {
        method: "POST",
        path,
        headers: vec![("authorization", credential.to_owned())],
        body: body.into(),
    }
}

/// Returns the text of the first member with this name. Works only for members before any payload, as the server
/// writes them: no blanks, nothing escaped.
pub fn text_member<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&body[..error.valid_up_to()]).ok()?,
    };
    // Names of members are few and short, so this scans some dozens of bytes.
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        if before.ends_with('"')
            && let Some(value) = after.strip_prefix("\":\"")
        {
            return value.split('"').next();
        }
        rest = after;
    }
    None
}

/// Letters that fill payloads.
pub fn padding(bytes: u64) -> &'static str {
    static LETTERS: [u8; 1_200_000] = [b'x'; 1_200_000];
    let bytes = &LETTERS[..LETTERS.len().min(bytes as usize)];
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_by_its_name_alone() {
        let body = br#"{"id":"sync-1","status":"IN_QUEUE","output":{"status":"x"}}"#;
        assert_eq!(text_member(body, "id"), Some("sync-1"));
        assert_eq!(text_member(body, "status"), Some("IN_QUEUE"));
        assert_eq!(text_member(body, "cursor"), None);
        assert_eq!(text_member(b"[\xff\"id\":\"a\"", "id"), None);
    }
}
