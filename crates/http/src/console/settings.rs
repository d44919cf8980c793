//! The operator's settings of the console.

use longshore_console::Folder;
use longshore_engine::SessionLimits;

use crate::TrustedProxies;

/// The operator's settings of the console.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// Whether there is a console. If not, its addresses are 404.
    pub is_on: bool,
    /// The base path: empty, or what a proxy puts before every path, such as `/longshore`.
    pub base: String,
    /// The address at which browsers reach the server, if the operator named one.
    pub public_url: Option<String>,
    /// The proxies whose `X-Forwarded-…` headers are believed.
    pub trusted_proxies: TrustedProxies,
    /// How long sessions last.
    pub session_limits: SessionLimits,
    /// What stands after amounts of money; empty for nothing.
    pub currency: String,
    /// Serves the files of a folder, for development. `None`: those in the program.
    pub folder: Option<Folder>,
}

impl Default for ConsoleSettings {
    fn default() -> Self {
        Self {
            is_on: true,
            base: String::new(),
            public_url: None,
            trusted_proxies: TrustedProxies::default(),
            session_limits: SessionLimits::default(),
            currency: String::new(),
            folder: None,
        }
    }
}

impl ConsoleSettings {
    /// Whether browsers reach the server over TLS, as far as the operator said.
    pub(crate) fn is_public_https(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.starts_with("https://"))
    }
}
