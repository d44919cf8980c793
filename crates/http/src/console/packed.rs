//! Answers to the page, packed with gzip: lists and histories are a tenth of their size then. Only what the page asks for
//! itself is packed: other clients get the bytes as they are, and streams are sent piece by piece.

use std::io::Write as _;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::{HeaderValue, StatusCode};
use http_body::Body as _;

use super::accepts::{Encoding, accepts};
use crate::sessions::CONSOLE_HEADER;

/// What is shorter fits into one packet anyway.
const BYTES_MIN: u64 = 1_024;
/// What is longer would keep a thread for too long. Payloads of jobs can be.
const BYTES_MAX: u64 = 1_000_000;

/// Packs the answer to a request of the page, if it is JSON of a known length.
pub(crate) async fn pack(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_of_page = headers.contains_key(CONSOLE_HEADER) && accepts(headers, Encoding::Gzip);
    let response = next.run(request).await;
    if is_of_page && is_packable(&response) { packed(response).await } else { response }
}

fn is_packable(response: &Response) -> bool {
    let headers = response.headers();
    let is_json =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let length = response.body().size_hint().exact();
    response.status() == StatusCode::OK
        && is_json
        && !headers.contains_key(CONTENT_ENCODING)
        && length.is_some_and(|length| (BYTES_MIN..=BYTES_MAX).contains(&length))
}

async fn packed(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    let Ok(plain) = to_bytes(body, BYTES_MAX as usize).await else {
        // Half of the answer is lost: the page reads it again.
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(head, Body::empty());
    };
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(&plain);
    let Ok(bytes) = encoder.finish() else { return Response::from_parts(head, Body::from(plain)) };
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(VARY, HeaderValue::from(ACCEPT_ENCODING));
    Response::from_parts(head, Body::from(bytes))
}
