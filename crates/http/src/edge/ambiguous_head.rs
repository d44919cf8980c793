//! Rejects request heads that can be read in two ways, or that name no host. A proxy in front of the server may have
//! read such a head differently: it checked another `Authorization`, or took a request for a body.

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONNECTION, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Version};
use http_body::Body as _;

use crate::wire::IDEMPOTENCY_KEY;
use crate::wire::api_error::ApiError;

/// A refusal, after which the connection closes: the start of the next request may be ambiguous too.
pub(crate) struct AmbiguousHead(ApiError);

impl AmbiguousHead {
    pub(crate) fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Checks a request's head. hyper has rejected an invalid `Content-Length` already, and closes the connection after a
/// request with `Content-Length` and `Transfer-Encoding`, as RFC 9112 (6.1) requires; its body is the chunks.
pub(crate) fn check(request: &Request) -> Result<(), AmbiguousHead> {
    let headers = request.headers();
    // Usually no header is repeated, and the two lengths show that without a scan.
    if headers.len() != headers.keys_len() {
        for (name, text) in
            [(HOST, "`Host`"), (AUTHORIZATION, "`Authorization`"), (IDEMPOTENCY_KEY, "`Idempotency-Key`")]
        {
            if count(headers, &name) > 1 {
                let text = format!("the header {text} comes more than once; send it once");
                return Err(AmbiguousHead(ApiError::bad_request("doubled_header", text)));
            }
        }
    }
    // RFC 9112, 3.2. HTTP/1.0 has no such rule.
    if request.version() == Version::HTTP_11 && !headers.contains_key(HOST) {
        let text = "the header `Host` is missing, which HTTP/1.1 requires; send it once";
        return Err(AmbiguousHead(ApiError::bad_request("missing_host", text)));
    }
    // A body of known length is not chunked.
    if request.body().size_hint().exact().is_none() && !is_chunked_only(headers) {
        let text = "`Transfer-Encoding` must be `chunked` and nothing else; say in `Content-Encoding` how the body is packed";
        return Err(AmbiguousHead(ApiError::bad_request("bad_transfer_encoding", text)));
    }
    Ok(())
}

fn count(headers: &HeaderMap, name: &http::HeaderName) -> usize {
    headers.get_all(name).into_iter().count()
}

/// Whether `chunked` is the only transfer encoding.
fn is_chunked_only(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(TRANSFER_ENCODING).into_iter();
    let chunked = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    // A request without a connection, such as a test's, has no transfer encoding.
    values.next().is_none_or(chunked) && values.next().is_none()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn code(lines: &[(&'static str, &'static str)]) -> Option<&'static str> {
        let mut request =
            Request::new(Body::from_stream(futures_util::stream::empty::<Result<&str, std::io::Error>>()));
        if lines.iter().all(|(name, _)| *name != "host") {
            request.headers_mut().insert(HOST, HeaderValue::from_static("test"));
        }
        for (name, value) in lines {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        check(&request).err().map(|ambiguous| ambiguous.0.code())
    }

    #[test]
    fn headers_that_decide_may_not_repeat() {
        for name in ["host", "authorization", "idempotency-key"] {
            assert_eq!(code(&[(name, "a")]), None);
            assert_eq!(
                code(&[(name, "a"), ("x", "y"), (name, "a")]),
                Some("doubled_header"),
                "the same twice"
            );
        }
        assert_eq!(code(&[("x", "y"), ("x", "z"), ("host", "a"), ("cookie", "a"), ("cookie", "b")]), None);
    }

    #[test]
    fn chunked_is_the_only_transfer_encoding() {
        for good in ["chunked", "Chunked "] {
            assert_eq!(code(&[("transfer-encoding", good)]), None, "{good}");
        }
        for bad in ["gzip, chunked", "chunked, chunked", "identity, chunked", "gzip"] {
            assert_eq!(code(&[("transfer-encoding", bad)]), Some("bad_transfer_encoding"), "{bad}");
        }
        let twice = [("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")];
        assert_eq!(code(&twice), Some("bad_transfer_encoding"));
    }
}
