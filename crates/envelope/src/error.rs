//! Why a body is refused.

use std::borrow::Cow;

use longshore_model::limits::JSON_LEVELS_MAX;

/// A body is refused. The text names the place, never the value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct EnvelopeError {
    code: &'static str,
    text: Cow<'static, str>,
}

impl EnvelopeError {
    /// An error with this code (`snake_case`) and text.
    pub(crate) fn new(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into() }
    }

    /// The body is not a JSON object that can be read.
    pub(crate) fn bad_json(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new("bad_json", text)
    }

    /// The body is nested too deep: the first bracket too many is byte `at`.
    pub fn nested_too_deep(at: usize) -> Self {
        let text = format!("the body is nested deeper than {JSON_LEVELS_MAX} levels: see byte {at}");
        Self::new("nested_too_deep", text)
    }

    /// The server never calls the address of the webhook.
    pub fn webhook_never_allowed() -> Self {
        Self::new(
            "webhook_never_allowed",
            "`webhook` is an address of a private network or of the server's machine, which the server's settings do not allow to be called",
        )
    }

    /// The code for clients, in `snake_case`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The text for people.
    pub fn into_text(self) -> Cow<'static, str> {
        self.text
    }
}
