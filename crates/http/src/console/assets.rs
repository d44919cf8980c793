//! The files of the page.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::accepts_gzip::accepts_gzip;
use super::headers::{cached, guard_asset};
use super::shell::asset_hash;
use crate::HttpState;
use crate::wire::api_error::ApiError;

/// The address contains the hash of the file, so that it never means other bytes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
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
        let response = if asset.is_gzip && accepts_gzip(&headers) {
            ([(CONTENT_ENCODING, "gzip")], asset.bytes).into_response()
        } else {
            asset.plain().into_owned().into_response()
        };
        (asset.content_type, response)
    };
    let control = if settings.folder.is_some() { NEVER } else { FOR_EVER };
    guard_asset(&path, response.headers_mut());
    cached(response.headers_mut(), control);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}
