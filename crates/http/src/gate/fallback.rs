//! Responses to requests for which there is no handler.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Uri};

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;
use crate::wire::guarded_page::guarded;

/// What a browser shows at `/`. The page has nothing of this server's data, so it needs no key.
const START_PAGE: &str = include_str!("start_page.html");
/// The line of the page that a server without its console leaves out.
const CONSOLE_LINE: &str = "<li><a href=\"/console\">";

/// The response where no route exists: 404, or 401 without a valid key where paths are secret. A browser gets a page at
/// `/`.
pub(crate) async fn unknown_route(
    State(state): State<HttpState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if method == Method::GET && uri.path() == "/" && accepts_html(&headers) {
        return guarded("text/html; charset=utf-8", start_page(state.console().is_on));
    }
    if is_guarded(&uri) && !auth::is_known_caller(&state, &headers) {
        return ApiError::unauthorized().into_response();
    }
    ApiError::no_such_route().into_response()
}

fn start_page(has_console: bool) -> Bytes {
    if has_console {
        return Bytes::from_static(START_PAGE.as_bytes());
    }
    let lines = START_PAGE.split_inclusive('\n').filter(|line| !line.starts_with(CONSOLE_LINE));
    Bytes::from(lines.collect::<String>())
}

/// Whether the client names HTML, as browsers do; `*/*` alone does not count.
fn accepts_html(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("text/html"))
}

/// The response where a route exists, but not for this method: 405, or 401 without a valid key where paths are secret.
pub(crate) async fn unknown_method(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> ApiError {
    if is_guarded(&uri) && !auth::is_known_caller(&state, &headers) {
        return ApiError::unauthorized();
    }
    ApiError::method_not_allowed()
}

/// Whether a client without a key must not learn that the path does not exist.
fn is_guarded(uri: &Uri) -> bool {
    let first = uri.path().split('/').nth(1);
    matches!(first, Some("v1" | "v2" | "sdk" | "graphql" | "openai" | "metrics"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_the_console_only_if_there_is_one() {
        let shown = |has_console| String::from_utf8(start_page(has_console).to_vec()).unwrap();
        assert!(shown(true).contains("\"/console\""), "{}", shown(true));
        assert!(!shown(false).contains("console") && shown(false).contains("/v1/docs"), "{}", shown(false));
    }
}
