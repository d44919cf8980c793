//! The regular expression of a search in logs.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::wire::api_error::ApiError;

/// Most bytes of memory of a compiled expression, and of what a search in it remembers.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// How a line of the official SDK begins: an object, whose `message` is what it says.
const SDK_LINE: &str = "{\"requestId\": ";

/// A regular expression that lines are looked for by. The time of a search is linear in the length of the line.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Regex);

/// A line of the official SDK.
#[derive(Deserialize)]
struct SdkLine<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

impl Pattern {
    /// # Errors
    ///
    /// 400 for a text that is no regular expression, or that needs more memory than one may.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        let compiled =
            RegexBuilder::new(text).size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).build();
        compiled.map(Self).map_err(|error| {
            let error = error.to_string();
            // The library shows the expression first, and what is wrong in the last line.
            let reason = error.lines().next_back().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            let text = format!("`regex` is no regular expression that can be searched for: {reason}");
            ApiError::bad_request("bad_parameter", text)
        })
    }

    /// Whether a line matches; of a line of the official SDK, whether its message does.
    pub(super) fn matches(&self, line: &str) -> bool {
        let said =
            line.starts_with(SDK_LINE).then(|| serde_json::from_str::<SdkLine<'_>>(line).ok()).flatten();
        self.0.is_match(said.as_ref().map_or(line, |line| &line.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_matches_as_it_is_and_one_of_the_sdk_by_its_message() {
        let sdk = "{\"requestId\": \"j-1\", \"message\": \"loaded \\\"a\\\" in 3 s\", \"level\": \"INFO\"}";
        for (pattern, line, is_match) in [
            ("^loaded \"a\" in \\d+ s$", sdk, true),
            ("INFO|requestId", sdk, false),
            ("^loaded", "loaded", true),
            ("LOADED", "loaded", false),
            ("(?i)LOADED", "loaded", true),
            ("^x", "{\"requestId\": x", false),
            ("requestId", "{\"requestId\": x", true),
            ("größe", "Die größe", true),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(line), is_match, "{pattern} in {line}");
        }
    }

    #[test]
    fn what_is_no_expression_or_a_large_one_is_refused_with_the_reason() {
        for (pattern, reason) in [
            ("(a", "unclosed group"),
            ("*a", "repetition operator missing expression"),
            ("(?=a)", "look-around"),
            ("(\\w{100}){100}", "exceeds size limit"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err();
            assert_eq!(error.code(), "bad_parameter");
            assert!(format!("{error:?}").contains(reason), "{pattern}: {error:?}");
        }
    }
}
