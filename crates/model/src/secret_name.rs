//! The names of secrets.

use alloc::sync::Arc;
use core::fmt;
use core::str::FromStr;

use crate::text_form::text_form;

/// The form of a secret's name.
pub const SECRET_NAME_PATTERN: &str = "^[A-Za-z][A-Za-z0-9_-]{0,63}$";
/// The longest name of a secret, in characters.
const CHARS_MAX: usize = 64;

/// The name of a secret, which is also its id: of the form [`SECRET_NAME_PATTERN`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(Arc<str>);

/// A text is not the name of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseSecretNameError;

impl SecretName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ParseSecretNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of a secret has the form {SECRET_NAME_PATTERN}")
    }
}

impl core::error::Error for ParseSecretNameError {}

impl FromStr for SecretName {
    type Err = ParseSecretNameError;

    fn from_str(text: &str) -> Result<Self, ParseSecretNameError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_name = text.len() <= CHARS_MAX
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(fits);
        if is_name { Ok(Self(text.into())) } else { Err(ParseSecretNameError) }
    }
}

text_form!(SecretName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_form_of_the_pattern() {
        let (longest, longer) = (["a"; 64].concat(), ["a"; 65].concat());
        for name in ["a", "HF_TOKEN", "hf-token", "A0", &longest] {
            assert_eq!(name.parse::<SecretName>().unwrap().as_str(), name);
        }
        for text in ["", "0A", "_A", "-a", "a b", "a.b", "ä", "aä", "a\n", "a=b", "a/b", &longer] {
            assert!(text.parse::<SecretName>().is_err(), "{text:?}");
        }
    }
}
