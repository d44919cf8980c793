//! The files of the page.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use longshore_console::Asset;

use super::accepts::{Encoding, accepts};
use super::headers::{cached, guard_asset};
use super::shell::asset_hash;
use crate::HttpState;
use crate::wire::api_error::ApiError;
use crate::wire::request_id::WithoutRequestId;

/// The address contains the hash of the file, so that it never means other bytes.
const FOR_EVER: &str = "max-age=31536000, immutable";
/// A folder's files change.
const NEVER: &str = "no-store";

/// `GET /console/a/{hash}/{path}`. A hash of another version is 404: its files are not in this program.
pub(super) async fn asset(
    State(state): State<HttpState>,
    Path((hash, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let settings = state.console();
    if !settings.is_on || hash != asset_hash(settings) {
        return Err(ApiError::no_such_route());
    }
    let (content_type, mut response) = if let Some(folder) = &settings.folder {
        let (content_type, bytes) = folder.asset(&path).ok_or_else(ApiError::no_such_route)?;
        (content_type, bytes.into_response())
    } else {
        let asset = longshore_console::asset(&path).ok_or_else(ApiError::no_such_route)?;
        (asset.content_type(), encoded(asset, &headers))
    };
    let control = if settings.folder.is_some() { NEVER } else { FOR_EVER };
    guard_asset(&path, response.headers_mut());
    cached(response.headers_mut(), control);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.extensions_mut().insert(WithoutRequestId);
    Ok(response)
}

/// The file in the shortest encoding that the client takes. Browsers take Brotli over TLS and from their own computer.
fn encoded(asset: Asset, headers: &HeaderMap) -> Response {
    let brotli = asset.brotli().filter(|_| accepts(headers, Encoding::Brotli));
    let packed = match brotli {
        Some(bytes) => Some((Encoding::Brotli, bytes)),
        None if accepts(headers, Encoding::Gzip) => asset.gzip().map(|bytes| (Encoding::Gzip, bytes)),
        None => None,
    };
    match packed {
        Some((encoding, bytes)) => ([(CONTENT_ENCODING, encoding.name())], bytes).into_response(),
        None => asset.plain().into_response(),
    }
}
