//! Deployed code, named by the hash of its content.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// The prefix of a template's `workdir` that names deployed code.
const PREFIX: &str = "code:";
const HASH_CHARS: usize = 64;

/// The SHA-256 of the archive that code came in, in lower-case hex.
///
/// A template names code as `code:<hash>` in place of a folder, so that the name stays valid when the data directory is
/// moved, or restored on another computer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeHash(String);

/// A text is no hash of code. Holds at most the first 65 characters of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseCodeError(String);

impl fmt::Display for ParseCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no hash of code: it has {HASH_CHARS} digits and letters a to f", self.0)
    }
}

impl core::error::Error for ParseCodeError {}

impl CodeHash {
    /// The code that a template's `workdir` names; `None` if the `workdir` names a folder.
    ///
    /// # Errors
    ///
    /// The text after `code:` is no hash.
    pub fn in_workdir(workdir: &str) -> Option<Result<Self, ParseCodeError>> {
        workdir.strip_prefix(PREFIX).map(str::parse)
    }

    /// The `workdir` of a template that runs this code: `code:<hash>`.
    pub fn workdir(&self) -> String {
        format!("{PREFIX}{}", self.0)
    }

    /// The hash without the prefix: 64 characters of 0–9 and a–f.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CodeHash {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, ParseCodeError> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == HASH_CHARS && text.bytes().all(is_digit) {
            return Ok(Self(text.to_owned()));
        }
        // A long text is not repeated whole in the error.
        Err(ParseCodeError(text.chars().take(HASH_CHARS + 1).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workdir_names_code_or_a_folder() {
        let hash = "0123456789abcdef".repeat(4);
        let code: CodeHash = hash.parse().unwrap();
        assert_eq!(code.workdir(), format!("code:{hash}"));
        assert_eq!(CodeHash::in_workdir(&code.workdir()), Some(Ok(code)));
        assert_eq!(CodeHash::in_workdir("/srv/hello"), None);
        for wrong in ["", "x", "../..", &hash[1..], &hash.to_uppercase(), &format!("{hash}0")] {
            assert!(matches!(CodeHash::in_workdir(&format!("code:{wrong}")), Some(Err(_))), "{wrong}");
        }
    }
}
