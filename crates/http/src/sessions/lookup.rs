//! The session of a request.

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use longshore_engine::{Engine, OpenSession, SessionLimits};

use super::cookie::CookieRule;
use super::csrf::is_csrf_of;
use super::minted::hash_of;
use super::{CONSOLE_HEADER, NEW};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The session whose cookie and CSRF value a request has; `None` also if it is over. The session's key is not checked.
pub(crate) fn session_of(
    engine: &Engine,
    limits: &SessionLimits,
    headers: &HeaderMap,
    rule: &CookieRule,
) -> Option<Arc<OpenSession>> {
    let sent = headers.get(CONSOLE_HEADER)?;
    let cookie = rule.read(headers).filter(|_| is_same_origin(headers))?;
    let session = by_cookie(engine, limits, cookie)?;
    is_csrf_of(cookie, sent.as_bytes()).then_some(session)
}

/// The session and the cookie of a request that asks for the CSRF value.
pub(crate) fn session_without_csrf<'a>(
    engine: &Engine,
    limits: &SessionLimits,
    headers: &'a HeaderMap,
    rule: &CookieRule,
) -> Option<(Arc<OpenSession>, &'a str)> {
    let asks = headers.get(CONSOLE_HEADER).is_some_and(|sent| sent.as_bytes() == NEW.as_bytes());
    let cookie = rule.read(headers).filter(|_| asks && is_same_origin(headers))?;
    Some((by_cookie(engine, limits, cookie)?, cookie))
}

/// The session with this cookie, if it is not over.
pub(crate) fn by_cookie(engine: &Engine, limits: &SessionLimits, cookie: &str) -> Option<Arc<OpenSession>> {
    let session = engine.sessions().by_hash(&hash_of(cookie))?;
    session.is_open(limits, engine.now()).then_some(session)
}

/// Whether the browser says that a page of this origin sends the request. Browsers that say nothing, over plain HTTP, are
/// held off by the header alone.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    headers.get(FETCH_SITE).is_none_or(|site| site.as_bytes() == b"same-origin")
}
