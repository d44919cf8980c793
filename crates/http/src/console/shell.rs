//! The one page of the console.

use std::io::Write as _;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use longshore_console::{Folder, TREE_HASH};

use super::accepts::{Encoding, accepts};
use super::headers::{cached, guard_page};
use super::settings::ConsoleSettings;
use crate::HttpState;
use crate::gate::client;
use crate::wire::api_error::ApiError;

/// Pages are checked at each visit, so that an upgraded server is met with its own assets.
const CONTROL: &str = "no-cache";

/// `GET /console` and every address below it that is nothing else. An address with the segment `.` or `..` is refused:
/// browsers send none.
pub(super) async fn shell(
    State(state): State<HttpState>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let settings = state.console();
    if !settings.is_on || uri.path().split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(ApiError::no_such_route());
    }
    let base = &*client::base(&state, &headers);
    let tag = tag(settings, base);
    let is_known = tag.is_some() && headers.get(IF_NONE_MATCH) == tag.as_ref();
    let (page, brotli) = match &settings.folder {
        None => (longshore_console::shell(base), longshore_console::shell_in_brotli(base)),
        Some(folder) => (folder.shell(base).ok_or_else(ApiError::no_such_route)?, None),
    };
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { whole(&page, brotli, &headers) };
    guard_page(&page, response.headers_mut());
    cached(response.headers_mut(), CONTROL);
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    Ok(response)
}

/// The page with status 200, in the shortest encoding that the client takes. `brotli` is the page in this encoding, if it is
/// there.
fn whole(page: &str, brotli: Option<&'static [u8]>, headers: &HeaderMap) -> Response {
    let mut response = match brotli.filter(|_| accepts(headers, Encoding::Brotli)) {
        Some(bytes) => ([(CONTENT_ENCODING, "br")], bytes).into_response(),
        None if accepts(headers, Encoding::Gzip) => {
            ([(CONTENT_ENCODING, "gzip")], gzip(page.as_bytes())).into_response()
        }
        None => page.to_owned().into_response(),
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// The page's `ETag`; `None` for a folder's page, which may change at any time.
fn tag(settings: &ConsoleSettings, base: &str) -> Option<HeaderValue> {
    if settings.folder.is_some() {
        return None;
    }
    HeaderValue::try_from(format!("W/\"{TREE_HASH}{base}\"")).ok()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// The hash in the addresses of the page's files.
pub(super) fn asset_hash(settings: &ConsoleSettings) -> &'static str {
    if settings.folder.is_some() { Folder::HASH } else { TREE_HASH }
}
