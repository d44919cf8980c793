//! The addresses of webhooks.

use http::Uri;
use http::uri::Authority;

/// Whether this is an absolute http or https URL.
pub fn is_webhook(url: &str) -> bool {
    web_address(url).is_some()
}

/// Reads an absolute http or https URL; `None` for any other text.
pub fn web_address(url: &str) -> Option<Uri> {
    let url = url.parse::<Uri>().ok()?;
    let scheme = url.scheme_str().unwrap_or_default();
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    (is_web && url.authority().is_some_and(has_host_and_port)).then_some(url)
}

/// Whether there is a host, and after it a port or nothing. Without this check a port above 65535 would count as none,
/// and another receiver would be called.
fn has_host_and_port(authority: &Authority) -> bool {
    let whole = authority.as_str();
    let place = whole.rsplit_once('@').map_or(whole, |(_, place)| place);
    let port = place.strip_prefix(authority.host()).unwrap_or(place);
    !authority.host().is_empty() && (port.is_empty() || authority.port_u16().is_some())
}
