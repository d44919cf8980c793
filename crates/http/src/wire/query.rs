//! Query parameters: unknown ones are ignored, known ones are checked.

use axum::extract::Query as AxumQuery;
use http::Uri;

use crate::wire::api_error::ApiError;

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn of(uri: &Uri) -> Result<Self, ApiError> {
        let AxumQuery(pairs) = AxumQuery::try_from_uri(uri)
            .map_err(|_| ApiError::bad_request("bad_query", "the query string cannot be decoded"))?;
        Ok(Self { pairs })
    }

    /// Parameters that came in another form than a query string.
    pub(crate) fn from_pairs(pairs: impl Iterator<Item = (String, String)>) -> Self {
        Self { pairs: pairs.collect() }
    }

    /// The last value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The parameters whose names start with this text: the rest of the name, and the value.
    pub(crate) fn starting_with<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let rest =
            move |(name, value): &'a (String, String)| Some((name.strip_prefix(start)?, value.as_str()));
        self.pairs.iter().filter_map(rest)
    }

    /// Every value of a repeatable parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether a switch is on: its value is `true`, `1` or empty. It is off if it is absent, `false` or `0`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            Some("true" | "1" | "") => Ok(true),
            None | Some("false" | "0") => Ok(false),
            Some(sent) => Err(bad_value(name, sent, "true or false")),
        }
    }

    /// The value of a parameter that must be one of `words`; `None` if it is absent.
    pub(crate) fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>, ApiError> {
        let Some(sent) = self.get(name) else { return Ok(None) };
        let known = words.iter().copied().find(|word| *word == sent);
        let one_of = if words.len() > 1 { "one of " } else { "" };
        known.map(Some).ok_or_else(|| bad_value(name, sent, &format!("{one_of}{}", words.join(", "))))
    }

    /// The value of a parameter that must be an integer from `min` to `max`; `None` if it is absent.
    pub(crate) fn integer(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = if digits { text.parse().ok() } else { None };
        match value {
            Some(value) if (min..=max).contains(&value) => Ok(Some(value)),
            _ => Err(ApiError::bad_request(
                "bad_parameter",
                format!("`{name}` must be an integer from {min} to {max}"),
            )),
        }
    }
}

/// The error for a value that is not one of those that a parameter may have.
fn bad_value(name: &str, sent: &str, must_be: &str) -> ApiError {
    let shown: String = sent.chars().take(60).collect();
    ApiError::bad_request("bad_parameter", format!("`{name}` is {shown:?}; it must be {must_be}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().unwrap()).unwrap()
    }

    #[test]
    fn takes_integers_in_their_range() {
        for (text, expected) in
            [("", None), ("other=1", None), ("n=5", Some(5)), ("n=1&n=%35", Some(5)), ("n=9", Some(9))]
        {
            assert_eq!(query(text).integer("n", 5, 9).unwrap(), expected, "{text}");
        }
        for text in ["n=", "n=4", "n=10", "n=5.0", "n=-5", "n=+5", "n=x", "n=99999999999999999999"] {
            assert_eq!(query(text).integer("n", 5, 9).unwrap_err().code(), "bad_parameter", "{text}");
        }
    }

    #[test]
    fn a_switch_is_on_or_off() {
        for (text, expected) in
            [("", false), ("s", true), ("s=1", true), ("s=true", true), ("s=0", false), ("s=false", false)]
        {
            assert_eq!(query(text).flag("s").unwrap(), expected, "{text}");
        }
        for text in ["s=maybe", "s=TRUE", "s=2", "s=%20"] {
            assert_eq!(query(text).flag("s").unwrap_err().code(), "bad_parameter", "{text}");
        }
    }

    #[test]
    fn tolerates_what_it_does_not_know() {
        let odd = query("gpu=$RUNPOD&&=&a=b=c&x");
        assert_eq!(odd.get("a"), Some("b=c"));
        assert_eq!(odd.get("x"), Some(""));
        assert_eq!(odd.get("y"), None);
    }
}
