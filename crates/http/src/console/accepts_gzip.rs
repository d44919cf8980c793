//! Whether a client takes responses that are packed with gzip.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// Whether `Accept-Encoding` names gzip, or every encoding, without the weight 0.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    let mut any = None;
    for part in values.flat_map(|value| value.split(',')) {
        let mut words = part.split(';').map(str::trim);
        let coding = words.next().unwrap_or_default();
        let weight = words.find_map(|word| word.strip_prefix("q=").or_else(|| word.strip_prefix("Q=")));
        let is_wanted = weight.is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0));
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
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
    fn gzip_counts_unless_its_weight_is_zero() {
        for (value, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("*", true),
            ("identity", false),
            ("", false),
            ("gzip;q=0", false),
            ("*;q=0", false),
            ("gzip;q=0, *", false),
            ("*;q=0, gzip", true),
            ("gzip;q=x", false),
            ("xgzip", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
