//! Measures how deep JSON is nested.
//!
//! The server skips values of any depth without recursion. Other parsers fail: a document of two thousand
//! levels ends Python's parser, and with it the whole response that contains the document.

use longshore_model::limits::JSON_LEVELS_MAX;
use memchr::{memchr2, memchr2_iter};

/// The byte of the first bracket that is nested deeper than allowed; `None` if there is none. Invalid JSON is not
/// detected here.
pub fn too_deep_at(text: &[u8]) -> Option<usize> {
    // Every bracket is closed again. Nearly all documents are too short, and most others have too few brackets.
    if text.len() <= 2 * JSON_LEVELS_MAX {
        return None;
    }
    memchr2_iter(b'[', b'{', text).nth(JSON_LEVELS_MAX)?;
    let (mut levels, mut at) = (0_usize, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at + 1)?,
            b'[' | b'{' if levels == JSON_LEVELS_MAX => return Some(at),
            b'[' | b'{' => levels += 1,
            b']' | b'}' => levels = levels.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The index of the quote that ends a string; `None` if there is none.
fn end_of_string(text: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{JSON_TOKENS, cases, json, mutated};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn the_first_bracket_too_many_is_named() {
        let most = JSON_LEVELS_MAX;
        assert_eq!(too_deep_at(nested(most).as_bytes()), None);
        assert_eq!(too_deep_at(nested(most + 1).as_bytes()), Some(most));
        assert_eq!(too_deep_at(nested(1_000_000).as_bytes()), Some(most));
        let objects = format!("{}1{}", r#"{"a":"#.repeat(most + 1), "}".repeat(most + 1));
        assert_eq!(too_deep_at(objects.as_bytes()), Some(5 * most));
        let behind = format!(r#"{{"a":[{}],"b":{}}}"#, vec!["[[]]"; 10_000].join(","), nested(most));
        let place = behind.find(r#""b":"#).unwrap() + 4 + most - 1;
        assert_eq!(too_deep_at(behind.as_bytes()), Some(place));
    }

    #[test]
    fn brackets_in_strings_and_beside_each_other_are_no_levels() {
        for flat in [
            format!(r#"["{}"]"#, "[{".repeat(2_000)),
            format!(r#"["\"{}","\\",1]"#, "[".repeat(2_000)),
            format!("[{}]", vec!["[]"; 10_000].join(",")),
            format!("{{{}}}", vec![r#""[":{"{":[]}"#; 10_000].join(",")),
        ] {
            serde_json::from_str::<Value>(&flat).unwrap();
            assert_eq!(too_deep_at(flat.as_bytes()), None, "{}", &flat[..40]);
        }
    }

    #[test]
    fn what_is_no_json_ends_well() {
        for text in [
            "[".repeat(2_000),
            format!("{}\"", "[".repeat(500)) + &"x".repeat(2_000),
            format!("[\"{}\\", "[".repeat(2_000)),
            "]".repeat(2_000) + &nested(600),
        ] {
            too_deep_at(text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(cases(100))]

        /// The depth as another parser counts it, which accepts 127 levels.
        #[test]
        fn any_json_is_as_deep_as_it_is(value in json(&["a", "[", "{"]), around in 0_usize..600) {
            fn levels_of(value: &Value) -> usize {
                match value {
                    Value::Array(items) => 1 + items.iter().map(levels_of).max().unwrap_or(0),
                    Value::Object(members) => 1 + members.values().map(levels_of).max().unwrap_or(0),
                    _ => 0,
                }
            }
            if let Ok(inner) = serde_json::from_str::<Value>(&value) {
                let levels = around + levels_of(&inner);
                let text = format!("{}{value}{}", "[".repeat(around), "]".repeat(around));
                prop_assert_eq!(too_deep_at(text.as_bytes()).is_some(), levels > JSON_LEVELS_MAX);
            }
        }

        #[test]
        fn spoiled_json_ends_well(text in mutated(json(&["a"]), JSON_TOKENS), around in 0_usize..600) {
            too_deep_at(&[vec![b'['; around], text].concat());
        }
    }
}
