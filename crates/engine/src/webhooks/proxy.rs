//! Calls through a proxy, where the operator wants that.
//!
//! A proxy looks names up and dials by itself: which of them may be called is its business then. What is still checked
//! here is an address in the call's own URL, and everything that `NO_PROXY` names and is therefore called directly.

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::WebhookSettings;

/// Which calls go through which proxy.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    matcher: Option<Matcher>,
}

impl Proxies {
    /// Those that the environment names, if the settings say so: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY`.
    pub fn of(settings: &WebhookSettings) -> Self {
        Self { matcher: settings.proxy_from_environment.then(Matcher::from_env) }
    }

    /// The one for calls to this target.
    pub fn of_target(&self, target: &Uri) -> Option<Intercept> {
        self.matcher.as_ref()?.intercept(target)
    }

    /// What the head of a call itself must bring for its proxy. A tunnel asks before the call is made.
    pub fn credentials_in_head(&self, target: &Uri) -> Option<HeaderValue> {
        let is_plain = target.scheme_str() == Some("http");
        self.of_target(target).filter(|_| is_plain)?.basic_auth().cloned()
    }
}

#[cfg(test)]
impl Proxies {
    /// All calls through this one, but those to `direct`.
    pub fn through(proxy: &str, direct: &str) -> Self {
        Self { matcher: Some(Matcher::builder().all(proxy.to_owned()).no(direct.to_owned()).build()) }
    }
}
