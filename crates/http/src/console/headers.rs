//! The headers that keep browsers from loading or running anything else in the console.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, header};
use ring::digest::{SHA256, digest};

/// The page loads its own files only, sends requests to its own server only, and cannot turn text into markup. The policy
/// for Trusted Types returns the one address of the page's worker. Before it stand the sources of scripts and styles.
const PAGE_POLICY: &str = "img-src 'self' blob: data:; media-src blob: data:; font-src 'self'; \
     connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types longshore-worker";

/// A worker has the policies of its script's response, and a style sends its own referrer. All other files have the page's.
const WORKER: &str = "events_worker.js";
const NO_REFERRER: &str = "no-referrer";
const WORKER_POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'";

/// Everything that the console does not use. Writing to the clipboard is left on, for its copy buttons.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), \
     display-capture=(), encrypted-media=(), fullscreen=(), gamepad=(), geolocation=(), gyroscope=(), hid=(), \
     idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), payment=(), \
     picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), \
     usb=(), window-management=(), xr-spatial-tracking=()";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

const PAGE: [(HeaderName, &str); 6] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, NO_REFERRER),
    (OPENER_POLICY, "same-origin"),
    (RESOURCE_POLICY, "same-origin"),
    (PERMISSIONS_POLICY, PERMISSIONS),
];

const ASSET: [(HeaderName, &str); 2] =
    [(X_CONTENT_TYPE_OPTIONS, "nosniff"), (RESOURCE_POLICY, "same-origin")];

/// Adds the headers that guard this page against other origins.
pub(super) fn guard_page(page: &str, headers: &mut HeaderMap) {
    insert(headers, PAGE);
    let (script, style) = (source(page, "script"), source(page, "style"));
    let policy =
        format!("default-src 'none'; script-src 'self'{script}; style-src 'self'{style}; {PAGE_POLICY}");
    // All of its characters are ASCII, so that this is the policy.
    let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
}

/// The source that permits the one element with this name whose text stands in the page: the hash of the text. Empty
/// without such an element.
fn source(page: &str, name: &str) -> String {
    let inside =
        page.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    inside.map_or_else(String::new, |(text, _)| {
        format!(" 'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())))
    })
}

/// Guards a file of the page.
pub(super) fn guard_asset(path: &str, headers: &mut HeaderMap) {
    insert(headers, ASSET);
    if path == WORKER {
        insert(headers, [(CONTENT_SECURITY_POLICY, WORKER_POLICY), (REFERRER_POLICY, NO_REFERRER)]);
    } else if path.rsplit('.').next() == Some("css") {
        insert(headers, [(REFERRER_POLICY, NO_REFERRER)]);
    }
}

/// What a response may be cached as, and by which request headers it varies.
pub(super) fn cached(headers: &mut HeaderMap, control: &'static str) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

fn insert<const N: usize>(headers: &mut HeaderMap, added: [(HeaderName, &'static str); N]) {
    for (name, value) in added {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
