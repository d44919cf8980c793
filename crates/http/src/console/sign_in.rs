//! The body of a sign-in.

use std::fmt;

use serde::Deserialize;

use crate::wire::api_error::ApiError;

/// What a browser signs in with.
pub(super) enum SignIn {
    /// The text of an API key.
    Key(String),
    /// A code that `POST /v1/console-codes` made.
    Code(String),
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both are secrets.
        f.write_str(match self {
            Self::Key(_) => "Key",
            Self::Code(_) => "Code",
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInBody {
    key: Option<String>,
    code: Option<String>,
}

impl SignIn {
    /// Reads `{"key": …}` or `{"code": …}`.
    ///
    /// # Errors
    ///
    /// `bad_body` for anything else. The error repeats nothing of the body.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ApiError> {
        let body: Option<SignInBody> = serde_json::from_slice(bytes).ok();
        match body.map(|SignInBody { key, code }| (key, code)) {
            Some((Some(key), None)) => Ok(Self::Key(key.trim().to_owned())),
            Some((None, Some(code))) => Ok(Self::Code(code.trim().to_owned())),
            _ => Err(ApiError::bad_request(
                "bad_body",
                "send a JSON object with either `key`, the text of an API key, or `code`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{bytes, cases};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_or_a_code_is_read() {
        assert!(matches!(SignIn::read(br#"{"key":" a\n"}"#), Ok(SignIn::Key(key)) if key == "a"));
        assert!(matches!(SignIn::read(br#"{"code":"b","key":null}"#), Ok(SignIn::Code(code)) if code == "b"));
        for bad in ["", "{}", "[]", r#"{"key":"a","code":"b"}"#, r#"{"key":1}"#, r#"{"key":"a","x":1}"#] {
            let refusal = SignIn::read(bad.as_bytes()).unwrap_err();
            assert_eq!(refusal.code(), "bad_body", "{bad}");
        }
        assert_eq!(format!("{:?}", SignIn::Key("secret".to_owned())), "Key");
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn any_bytes_are_read_or_refused(sent in bytes()) {
            if let Err(refusal) = SignIn::read(&sent) {
                prop_assert_eq!(refusal.status().as_u16(), 400);
            }
        }
    }
}
