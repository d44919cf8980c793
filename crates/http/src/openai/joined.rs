//! Answers as text: some workers read the response of their model server as text, whole or by lines, and yield the text.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::workers::{plain_text, read_json, within};

/// Text that a worker yields in pieces.
#[derive(Debug, Default)]
pub(super) struct JoinedText {
    text: Vec<u8>,
}

impl JoinedText {
    /// Adds a piece. Returns false, and adds nothing, if the piece is not a JSON string.
    pub(super) fn push(&mut self, json: &[u8]) -> bool {
        let Some(string) = std::str::from_utf8(json).ok().filter(|json| json.starts_with('"')) else {
            return false;
        };
        self.text.extend_from_slice(plain_text(string).as_bytes());
        true
    }

    /// The length of the text, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The text, if it is one JSON object. `None` for any other text.
    pub(super) fn into_object(self) -> Option<Bytes> {
        let is_object = self.text.trim_ascii_start().starts_with(b"{");
        let text = is_object.then(|| Bytes::from(self.text))?;
        // Python may have written NaN and other values that are not JSON.
        read_json(&text, |text| {
            let object: &RawValue = serde_json::from_slice(text)?;
            Ok(text.slice_ref(object.get().as_bytes()))
        })
        .ok()
    }
}

/// The answer in a job's output: the only element of a list, or else the output. A text that contains one JSON object is
/// replaced by the object.
pub(super) fn answer_in(output: Bytes) -> Bytes {
    let mut text = JoinedText::default();
    let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&output) else {
        text.push(&output);
        return text.into_object().unwrap_or(output);
    };
    // A list has the chunks of a generator. A chunk with metrics has the answer in its output.
    let mut yielded = elements.iter().map(|element| {
        let element = output.slice_ref(element.get().as_bytes());
        within(&element).map_or(element, |(output, _)| output)
    });
    let Some(first) = yielded.next() else { return output };
    let is_only = elements.len() == 1;
    let is_text = text.push(&first) && yielded.all(|element| text.push(&element));
    match text.into_object() {
        Some(object) if is_text => object,
        _ if is_only => first,
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(output: &str) -> String {
        String::from_utf8(answer_in(Bytes::copy_from_slice(output.as_bytes())).to_vec()).unwrap()
    }

    #[test]
    fn lists_of_one_are_unwrapped_byte_for_byte() {
        for (output, expected) in [
            ("[ {\"a\": 1.0} ]", "{\"a\": 1.0}"),
            ("[1,2]", "[1,2]"),
            ("{\"a\":[1]}", "{\"a\":[1]}"),
            ("[[1]]", "[1]"),
            ("[]", "[]"),
            (r#"[{"metrics": {}, "output": {"a": 1.0}}]"#, r#"{"a": 1.0}"#),
            (r#"[{"metrics": 1, "output": {}}]"#, r#"{"metrics": 1, "output": {}}"#),
        ] {
            assert_eq!(answer(output), expected);
        }
    }

    #[test]
    fn text_that_writes_an_object_is_that_object() {
        for (output, expected) in [
            (r#""{\"a\": 1.0}""#, r#"{"a": 1.0}"#),
            (r#"[{"output": "{\"a\": 1", "metrics": {}}, "}"]"#, r#"{"a": 1}"#),
            (r#"["{\"a\": 1e400}"]"#, r#"{"a": 1e400}"#),
            (r#"["{", " \"a\": ", "\"x\\ny\"", "}"]"#, r#"{ "a": "x\ny"}"#),
            (r#"["{\"a\": \"\\ud8", "3e\\udd9c ü\"}\n"]"#, r#"{"a": "\ud83e\udd9c ü"}"#),
            (r#""{\"a\": NaN}""#, r#"{"a": null}"#),
        ] {
            assert_eq!(answer(output), expected);
        }
    }

    #[test]
    fn other_text_stays_a_string() {
        for (output, expected) in [
            (r#""hello""#, r#""hello""#),
            (r#""[1]""#, r#""[1]""#),
            (r#""{\"a\": 1} {}""#, r#""{\"a\": 1} {}""#),
            (r#"["{\"a\":"]"#, r#""{\"a\":""#),
            (r#"["{\"a\":", 1, "}"]"#, r#"["{\"a\":", 1, "}"]"#),
            (r#"["{\"a\":1}", "{\"b\":2}"]"#, r#"["{\"a\":1}", "{\"b\":2}"]"#),
            (r#""""#, r#""""#),
        ] {
            assert_eq!(answer(output), expected);
        }
    }

    #[test]
    fn deep_text_is_no_stack_overflow() {
        let deep = format!("\"{{\\\"a\\\":{}{}}}\"", "[".repeat(100_000), "]".repeat(100_000));
        assert!(answer(&deep).starts_with("{\"a\":[["));
    }

    proptest! {
        #[test]
        fn any_output_is_survived(output in r#"[\[\]{}",:\\uD80-9a-zN -]{0,60}"#) {
            let _ = answer(&output);
        }

        #[test]
        fn an_object_cut_anywhere_comes_whole(text: String, number: u64, cuts: Vec<prop::sample::Index>) {
            let whole = serde_json::json!({ "text": text, "n": number }).to_string();
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
            ends.retain(|end| whole.is_char_boundary(*end));
            ends.extend([0, whole.len()]);
            ends.sort_unstable();
            let pieces: Vec<&str> = ends.windows(2).map(|ends| &whole[ends[0]..ends[1]]).collect();
            prop_assert_eq!(answer(&serde_json::to_string(&pieces).unwrap()), whole);
        }
    }
}
