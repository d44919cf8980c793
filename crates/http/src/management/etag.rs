//! `ETag`, `If-Match` and `If-None-Match`: whoever changes a resource can say which one they have seen.
//!
//! A tag is made from the stored record, secrets included, so it changes with what clients cannot read, too; it tells
//! nobody what that is.

use axum::response::{IntoResponse, Response};
use http::header::{ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use longshore_engine::Engine;
use serde::Serialize;
use serde_json::Value;

use crate::wire::api_error::ApiError;

/// What stands between a record's tag and that of what is shown beside it.
const BESIDE: char = '-';

/// A resource's tag, without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ETag(String);

impl ETag {
    /// The tag of a record.
    pub(super) fn of(engine: &Engine, record: &impl Serialize) -> Self {
        // Records are structs with names as keys, which always have a text.
        Self(engine.fingerprint(&serde_json::to_vec(record).unwrap_or_default()))
    }

    /// The tag of a record that is shown with more than itself.
    pub(super) fn beside(self, engine: &Engine, view: &Value) -> Self {
        let shown = engine.fingerprint(view.to_string().as_bytes());
        Self(format!("{}{BESIDE}{shown}", self.0))
    }

    /// Answers a change with the resource as it is now.
    pub(super) fn answer(&self, view: Value) -> Response {
        let mut response = axum::Json(view).into_response();
        response.headers_mut().insert(ETAG, self.header());
        response
    }

    /// Answers a look: 304 for whoever has this already.
    pub(super) fn answer_look(&self, headers: &HeaderMap, view: Value) -> Response {
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
        // Hexadecimal digits are always a header's value.
        HeaderValue::try_from(format!("\"{}\"", self.0)).unwrap_or(const { HeaderValue::from_static("\"\"") })
    }
}

/// What `If-Match` says that a resource must be.
#[derive(Debug)]
pub(super) struct IfMatch(Option<Vec<String>>);

impl IfMatch {
    /// Reads the header. Without it anything will do.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self(listed(headers, &IF_MATCH))
    }

    /// Whether the record is what the client has seen, with or without more beside it.
    pub(super) fn is_met(&self, engine: &Engine, record: &impl Serialize) -> bool {
        let Some(expected) = &self.0 else { return true };
        let tag = ETag::of(engine, record);
        let is_it = |text: &String| {
            let record = unquoted(text).map(|tag| tag.split_once(BESIDE).map_or(tag, |(record, _)| record));
            text == "*" || record == Some(&tag.0)
        };
        expected.iter().any(is_it)
    }

    /// As [`IfMatch::is_met`].
    pub(super) fn check(&self, engine: &Engine, record: &impl Serialize) -> Result<(), ApiError> {
        if self.is_met(engine, record) { Ok(()) } else { Err(ApiError::changed_meanwhile()) }
    }
}

/// The items of a header that lists tags. None without the header.
fn listed(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<String>> {
    headers.contains_key(name).then(|| {
        // What is no text is no tag of ours.
        let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| text.split(',')).map(|tag| tag.trim().to_owned()).collect()
    })
}

/// A strong tag without its quotes.
fn unquoted(tag: &str) -> Option<&str> {
    tag.strip_prefix('"')?.strip_suffix('"')
}
