//! Which encodings of a response a client takes.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// An encoding that responses can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    /// The value of `Content-Encoding`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    fn is_named(self, coding: &str) -> bool {
        coding.eq_ignore_ascii_case(self.name())
            || (self == Self::Gzip && coding.eq_ignore_ascii_case("x-gzip"))
    }
}

/// Whether `Accept-Encoding` names the encoding, or every encoding, without the weight 0.
pub(super) fn accepts(headers: &HeaderMap, encoding: Encoding) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    let mut any = None;
    for part in values.flat_map(|value| value.split(',')) {
        let mut words = part.split(';').map(str::trim);
        let coding = words.next().unwrap_or_default();
        let weight = words.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
        let is_wanted = weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0));
        if encoding.is_named(coding) {
            return is_wanted;
        }
        if coding == "*" {
            any = Some(is_wanted);
        }
    }
    any.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_counts_unless_its_weight_is_zero() {
        for (value, gzip, brotli) in [
            ("gzip, deflate, br", true, true),
            ("br;q=1.0, GZIP;q=0.5", true, true),
            ("x-gzip", true, false),
            ("BR", false, true),
            ("*", true, true),
            ("identity", false, false),
            ("", false, false),
            ("gzip;q=0", false, false),
            ("*;q=0", false, false),
            ("gzip;q=0, *", false, true),
            ("*;q=0, gzip", true, false),
            ("gzip;q=x, br;q=0", false, false),
            ("xgzip, brotli", false, false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value.parse().unwrap())]);
            assert_eq!(accepts(&headers, Encoding::Gzip), gzip, "{value}");
            assert_eq!(accepts(&headers, Encoding::Brotli), brotli, "{value}");
        }
        assert!(!accepts(&HeaderMap::new(), Encoding::Gzip));
    }
}
