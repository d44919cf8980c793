//! Calls through a proxy, if the settings enable it.
//!
//! A proxy resolves names and connects by itself, so it also decides which names may be called. This server still
//! checks a literal address in the URL of a call, and every address of a host that `NO_PROXY` names: that one is called
//! directly.

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::WebhookSettings;

/// The rules that choose the proxy of a call. Empty: every call is direct.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    matcher: Option<Matcher>,
}

impl Proxies {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` from the environment if the settings enable
    /// proxies.
    pub fn of(settings: &WebhookSettings) -> Self {
        Self { matcher: settings.proxy_from_environment.then(Matcher::from_env) }
    }

    /// Returns the proxy for calls to this target; `None` for a direct call.
    pub fn of_target(&self, target: &Uri) -> Option<Intercept> {
        self.matcher.as_ref()?.intercept(target)
    }

    /// Returns the `Proxy-Authorization` header of a plain `http` call; `None` without credentials. For `https` the
    /// credentials are sent when the tunnel is opened.
    pub fn credentials_in_head(&self, target: &Uri) -> Option<HeaderValue> {
        let is_plain = target.scheme_str() == Some("http");
        self.of_target(target).filter(|_| is_plain)?.basic_auth().cloned()
    }
}

#[cfg(test)]
impl Proxies {
    /// Returns rules that choose `proxy` for every host except `direct`.
    pub fn through(proxy: &str, direct: &str) -> Self {
        Self { matcher: Some(Matcher::builder().all(proxy.to_owned()).no(direct.to_owned()).build()) }
    }
}
