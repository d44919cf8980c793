//! `ETag`, `If-Match` and `If-None-Match`: a client that changes a resource can name the version that it has read.
//!
//! A tag is a keyed fingerprint of the stored record, secrets included. The tag changes with a secret, but does not
//! reveal it.

use axum::response::{IntoResponse, Response};
use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use longshore_engine::Engine;
use serde::Serialize;

use crate::wire::api_error::ApiError;

/// Separates the tag of a record from the tag of a response that shows the record with other values.
const BESIDE: char = '-';

/// The tag of a resource, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ETag(String);

impl ETag {
    /// The tag of a stored record.
    pub(super) fn of(engine: &Engine, record: &impl Serialize) -> Self {
        // Serializing a record cannot fail: records are structs with named fields.
        Self(engine.fingerprint(&serde_json::to_vec(record).unwrap_or_default()))
    }

    /// The tag of a record that a response shows together with external values, such as its workers. `view` is the
    /// whole response.
    pub(super) fn beside(self, engine: &Engine, view: &impl Serialize) -> Self {
        // Serializing a view cannot fail: it is a map with texts as names.
        let shown = engine.fingerprint(&serde_json::to_vec(view).unwrap_or_default());
        Self(format!("{}{BESIDE}{shown}", self.0))
    }

    /// Answers 200 with the resource and the tag.
    pub(super) fn answer(&self, view: impl Serialize) -> Response {
        let mut response = axum::Json(view).into_response();
        response.headers_mut().insert(ETAG, self.header());
        response
    }

    /// Answers a GET: 304 if `If-None-Match` names this tag, else 200 with the resource.
    pub(super) fn answer_get(&self, headers: &HeaderMap, view: impl Serialize) -> Response {
        let known = listed(headers, &IF_NONE_MATCH);
        if known.is_none_or(|known| {
            !known.iter().any(|tag| tag == "*" || unquoted(tag.trim_start_matches("W/")) == Some(&self.0))
        }) {
            return self.answer(view);
        }
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        response.headers_mut().insert(ETAG, self.header());
        response
    }

    fn header(&self) -> HeaderValue {
        // Tags have hexadecimal digits and `-`, which a header value may have.
        HeaderValue::try_from(format!("\"{}\"", self.0)).unwrap_or(const { HeaderValue::from_static("\"\"") })
    }
}

/// The tags in `If-Match`, one of which the resource must have.
#[derive(Debug)]
pub(super) struct IfMatch(Option<Vec<String>>);

impl IfMatch {
    /// Reads the header. Without the header every record matches.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self(listed(headers, &IF_MATCH))
    }

    /// Whether the header names the tag of the record, or any with `*`. The part of a tag after [`BESIDE`] is ignored.
    pub(super) fn is_met(&self, engine: &Engine, record: &impl Serialize) -> bool {
        let Some(expected) = &self.0 else { return true };
        let tag = ETag::of(engine, record);
        let is_it = |text: &String| {
            let record = unquoted(text).map(|tag| tag.split_once(BESIDE).map_or(tag, |(record, _)| record));
            text == "*" || record == Some(&tag.0)
        };
        expected.iter().any(is_it)
    }

    /// Checks [`IfMatch::is_met`].
    ///
    /// # Errors
    ///
    /// 412 if the header names other tags.
    pub(super) fn check(&self, engine: &Engine, record: &impl Serialize) -> Result<(), ApiError> {
        if self.is_met(engine, record) { Ok(()) } else { Err(ApiError::changed_meanwhile()) }
    }
}

/// The items of a header that lists tags. `None` without the header.
fn listed(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<String>> {
    headers.contains_key(name).then(|| {
        // A value that is not ASCII text cannot be a tag of this server.
        let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| text.split(',')).map(|tag| tag.trim().to_owned()).collect()
    })
}

/// A strong tag without quotes. `None` for a weak tag and for a text without quotes.
fn unquoted(tag: &str) -> Option<&str> {
    tag.strip_prefix('"')?.strip_suffix('"')
}
