//! `GET code/{hash}`: the archive of deployed code, for workers that are not on the server's computer.
//!
//! An archive never changes, so its hash is its tag, and a worker whose download broke off asks for the rest.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::try_unfold;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE,
    RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use longshore_model::CodeHash;

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

/// Bytes that are read and sent together.
const PIECE_BYTES: u64 = 64 << 10;

/// Sends the archive, or the range of it that the request names. 404 unless a version of the endpoint runs this code.
pub(super) async fn archive(
    State(state): State<HttpState>,
    path: Result<Path<(String, String)>, axum::extract::rejection::PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // A path that is no text names no endpoint.
    let (endpoint, hash) = path.map(|Path(path)| path).unwrap_or_default();
    let endpoint = auth::authorize_worker(&state, &headers, &endpoint, None)?;
    let catalog = state.engine().catalog();
    let hash: CodeHash = hash.parse().map_err(|_| no_such_code())?;
    if !catalog.has_version_with(&endpoint.record(), &hash) {
        return Err(no_such_code());
    }
    let tag = format!("\"{hash}\"");
    let names_tag = |name: HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.split(',').any(|listed| listed.trim().trim_start_matches("W/") == tag))
    };
    if names_tag(IF_NONE_MATCH) == Some(true) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED, &tag, Body::empty()));
    }
    let files = Arc::clone(state.files());
    let opened = tokio::task::spawn_blocking(move || files.open_code(&hash)).await;
    let archive = opened.map_err(|_| ApiError::internal())?.ok_or_else(not_stored)?;
    let wanted = headers.get(RANGE).filter(|_| names_tag(IF_RANGE) != Some(false));
    Ok(answer(archive.file, archive.bytes, wanted, &tag))
}

fn no_such_code() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "code_not_found", "no version of this endpoint runs this code")
}

fn not_stored() -> ApiError {
    let text = "the server has the files of this code, and not its archive; deploy the same folder again";
    ApiError::new(StatusCode::NOT_FOUND, "code_not_stored", text)
}

/// 200 with the whole archive of `all` bytes, 206 with the wanted range, or 416 if it has no byte.
fn answer(file: File, all: u64, wanted: Option<&HeaderValue>, tag: &str) -> Response {
    let (status, range) = match wanted.and_then(|value| range_of(value.to_str().ok()?, all)) {
        None => (StatusCode::OK, 0..all),
        Some(range) if range.is_empty() => {
            let text = format!("the archive has {all} bytes, and `Range` names none of them");
            let mut response =
                ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", text)
                    .into_response();
            set(&mut response, CONTENT_RANGE, &format!("bytes */{all}"));
            return response;
        }
        Some(range) => (StatusCode::PARTIAL_CONTENT, range),
    };
    let (start, end) = (range.start, range.end);
    let mut response = with_headers(status, tag, pieces(file, range));
    set(&mut response, CONTENT_TYPE, "application/gzip");
    set(&mut response, CONTENT_LENGTH, &(end - start).to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        set(&mut response, CONTENT_RANGE, &format!("bytes {start}-{}/{all}", end - 1));
    }
    response
}

/// The range that a header wants of `all` bytes: empty if no byte is in it, `None` if the header is ignored because it has
/// several ranges or another form.
fn range_of(header: &str, all: u64) -> Option<Range<u64>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let suffix: u64 = last.parse().ok()?;
        return Some(all.saturating_sub(suffix)..all);
    }
    let first: u64 = first.parse().ok()?;
    let end = match last {
        "" => all,
        last => last.parse::<u64>().ok().filter(|last| *last >= first)?.saturating_add(1).min(all),
    };
    Some(first..end.max(first)).map(|range| if range.start < all { range } else { all..all })
}

/// A body of these bytes of a file, which are read as the client takes them.
fn pieces(file: File, range: Range<u64>) -> Body {
    Body::from_stream(try_unfold((file, range), |(file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || read_piece(file, range)).await;
        read.map_err(io::Error::other)?.map(Some)
    }))
}

fn read_piece(mut file: File, range: Range<u64>) -> io::Result<(Bytes, (File, Range<u64>))> {
    let len = (range.end - range.start).min(PIECE_BYTES);
    let mut piece = vec![0; len as usize];
    file.seek(SeekFrom::Start(range.start))?;
    file.read_exact(&mut piece)?;
    Ok((piece.into(), (file, range.start + len..range.end)))
}

fn with_headers(status: StatusCode, tag: &str, body: Body) -> Response {
    let mut response = (status, body).into_response();
    set(&mut response, ETAG, tag);
    set(&mut response, ACCEPT_RANGES, "bytes");
    set(&mut response, CACHE_CONTROL, "private, max-age=31536000, immutable");
    response
}

/// Sets a header. All values are made of digits, letters and a few other characters of ASCII.
fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_within_the_archive_or_empty_or_ignored() {
        for (header, expected) in [
            ("bytes=0-", Some(0..10)),
            ("bytes=3-", Some(3..10)),
            ("bytes=3-5", Some(3..6)),
            ("bytes=9-99", Some(9..10)),
            ("bytes=-4", Some(6..10)),
            ("bytes=-40", Some(0..10)),
            ("bytes=-0", Some(10..10)),
            ("bytes=10-", Some(10..10)),
            ("bytes=18446744073709551615-18446744073709551615", Some(10..10)),
            ("bytes=5-3", None),
            ("bytes=1-2,4-5", None),
            ("bytes=a-b", None),
            ("bytes=", None),
            ("items=0-1", None),
        ] {
            assert_eq!(range_of(header, 10), expected, "{header}");
        }
    }
}
