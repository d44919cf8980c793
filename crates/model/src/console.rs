//! Sessions of the console, and the codes that open them.

use alloc::string::String;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Millis;

/// A browser that is signed in with an API key. It may do what the key may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleSession {
    /// The public name: the first 16 digits of `hash`.
    pub id: String,
    /// Lower-case hex of the SHA-256 of the cookie's value.
    pub hash: String,
    /// The id of the API key.
    pub key: String,
    /// The hash of the key's text when the session was opened. A key with another text has no part in the session.
    pub key_hash: String,
    /// When the session was opened.
    pub opened_at: Millis,
    /// The time of the last request, as last written.
    pub used_at: Millis,
    /// The address that the session was opened from.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// `User-Agent` of the browser that opened the session.
    #[serde(default)]
    pub agent: Option<String>,
}

/// A code that opens one session, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleCode {
    /// Lower-case hex of the SHA-256 of the code.
    pub hash: String,
    /// The id of the API key that the session gets.
    pub key: String,
    /// The hash of the key's text when the code was made.
    pub key_hash: String,
    /// From this time on the code is refused.
    pub expires_at: Millis,
}
