//! The settings of the console.

use longshore_console::Folder;
use longshore_engine::SessionLimits;
use longshore_http::{ConsoleSettings, TrustedProxies};
use serde::Deserialize;

use super::{Settings, SettingsError};

/// Environment variable with a folder of the console's files, for development. Only a program without optimizations
/// reads it.
pub(super) const FOLDER_VARIABLE: &str = "LONGSHORE_CONSOLE_ASSETS";

/// Shorter sessions would end between two requests of a page.
const SESSION_MS_MIN: u64 = 60_000;
/// One year.
const SESSION_MS_MAX: u64 = 366 * 24 * 3_600_000;

/// A currency has a sign of one character or a code of three.
const CURRENCY_CHARS_MAX: usize = 8;

/// Whether something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Switch {
    On,
    Off,
}

impl Settings {
    /// The console's settings for the HTTP edge.
    pub(super) fn console(&self) -> ConsoleSettings {
        let folder = std::env::var_os(FOLDER_VARIABLE).filter(|_| cfg!(debug_assertions));
        ConsoleSettings {
            is_on: self.console == Switch::On,
            base: self.console_base.trim_end_matches('/').to_owned(),
            public_url: self.console_url(),
            // Checked before.
            trusted_proxies: TrustedProxies::parse(&self.trusted_proxies).unwrap_or_default(),
            session_limits: self.session_limits(),
            currency: self.currency.clone(),
            folder: folder.map(Folder::at),
        }
    }

    /// The address at which browsers reach the console, if it is known. `public_url` is that of the jobs' address, where
    /// there is no console if operators have an address of their own.
    fn console_url(&self) -> Option<String> {
        let url = self.public_url.trim_end_matches('/');
        (!url.is_empty() && self.management_listen.is_empty()).then(|| url.to_owned())
    }

    /// The longest times of sessions.
    pub(crate) fn session_limits(&self) -> SessionLimits {
        SessionLimits { idle_ms: self.session_idle_ms, max_ms: self.session_max_ms }
    }

    /// Checks the ranges and forms. The base path is written into the page and compared with paths of requests as they are.
    pub(super) fn check_console(&self) -> Result<(), SettingsError> {
        for (name, value) in
            [("session_idle_ms", self.session_idle_ms), ("session_max_ms", self.session_max_ms)]
        {
            if !(SESSION_MS_MIN..=SESSION_MS_MAX).contains(&value) {
                return Err(SettingsError::Value(format!(
                    "`{name}` is {value}; it must be from {SESSION_MS_MIN} to {SESSION_MS_MAX}"
                )));
            }
        }
        let currency = &self.currency;
        if currency.chars().count() > CURRENCY_CHARS_MAX || currency.chars().any(char::is_control) {
            return Err(SettingsError::Value(format!(
                "`currency` is {currency:?}; it must have at most {CURRENCY_CHARS_MAX} characters, such as EUR"
            )));
        }
        if let Err(bad) = TrustedProxies::parse(&self.trusted_proxies) {
            return Err(SettingsError::Value(format!(
                "`trusted_proxies` has {bad:?}; name addresses and networks such as 127.0.0.1 and 10.0.0.0/8, with commas \
                 between them"
            )));
        }
        let base = self.console_base.trim_end_matches('/');
        if longshore_http::is_base_path(base) {
            return Ok(());
        }
        let text = format!(
            "`console_base` is {:?}; it must be empty or a path such as /longshore, of letters, digits, `-`, `_`, `.` and \
             `~`, at most 200 characters",
            self.console_base
        );
        Err(SettingsError::Value(text))
    }
}
