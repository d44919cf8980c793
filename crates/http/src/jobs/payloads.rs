//! `jobs/{job}/input` and `jobs/{job}/output`: the bytes of a payload, as they came.

use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::gate::call::Call;
use crate::wire::api_error::ApiError;

/// `GET /jobs/{job}/input`.
pub(super) async fn input(call: Call) -> Result<Response, ApiError> {
    let bytes = call.endpoint.jobs().input(call.job()?).await?;
    Ok(answer(bytes, &call.headers))
}

/// `GET /jobs/{job}/output`. 404 while there is none.
pub(super) async fn output(call: Call) -> Result<Response, ApiError> {
    let mut job = call.endpoint.jobs().status(call.job()?).await?;
    let output = job.output.take().ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_output",
            "the job has no output: it has not ended, or has none",
        )
    })?;
    Ok(answer(job.room.around(output), &call.headers))
}

/// The bytes, or the part of them that the request asks for.
fn answer(bytes: Bytes, headers: &HeaderMap) -> Response {
    let length = bytes.len();
    let wanted =
        headers.get(RANGE).and_then(|value| value.to_str().ok()).and_then(|text| range(text, length));
    let (status, body, content_range) = match wanted {
        None => (StatusCode::OK, bytes, None),
        Some(wanted) if wanted.is_empty() => return beyond(length),
        Some(Range { start, end }) => {
            let content_range = format!("bytes {start}-{}/{length}", end - 1);
            (StatusCode::PARTIAL_CONTENT, bytes.slice(start..end), Some(content_range))
        }
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // A payload is what others wrote: no browser shows it as a page.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if let Some(value) = content_range.and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(CONTENT_RANGE, value);
    }
    response
}

/// 416 for a range that names none of `length` bytes.
fn beyond(length: usize) -> Response {
    let text = format!("the payload has {length} bytes, and `Range` names none of them");
    let mut response =
        ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", text).into_response();
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{length}")) {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    response
}

/// The bytes of a range such as `bytes=0-99`; an empty range if it is outside of `length` bytes. `None` for a header that is
/// not understood and for several ranges, which servers may answer with the whole.
fn range(text: &str, length: usize) -> Option<Range<usize>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    Some(match (first, last) {
        ("", last) => length.saturating_sub(number(last)?)..length,
        (first, "") => number(first)?..length,
        (first, last) => number(first)?..number(last)?.checked_add(1)?.min(length),
    })
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn a_range_is_a_part_of_the_bytes() {
        for (text, expected) in [
            ("bytes=0-3", Some(0..4)),
            ("bytes=5-", Some(5..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=-30", Some(0..10)),
            ("bytes=8-99", Some(8..10)),
            ("bytes=10-", Some(10..10)),
            ("bytes=-0", Some(10..10)),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("lines=0-1", None),
            ("bytes=0-99999999999999999999", None),
        ] {
            assert_eq!(range(text, 10), expected, "{text}");
        }
        assert!(range("bytes=4-2", 10).unwrap().is_empty());
    }
}
