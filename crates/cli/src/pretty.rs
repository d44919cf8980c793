//! Indented JSON.

use serde_json::value::RawValue;

/// Indents JSON. The text of numbers is unchanged.
pub(crate) fn pretty(json: &RawValue) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = json.get().chars().filter(|c| !matches!(c, '\n' | '\r')).peekable();
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            ' ' | '\t' => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prettied(text: &str) -> String {
        pretty(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_result_is_indented_and_its_numbers_keep_their_digits() {
        let text = prettied(r#"{"a": 1.0, "b": [1e400, "x, {\"y\": [\\]"], "c": {}, "d": [ ]}"#);
        let lines = ["{", "  \"a\": 1.0,", "  \"b\": [", "    1e400,", r#"    "x, {\"y\": [\\]""#];
        assert_eq!(text.lines().take(5).collect::<Vec<_>>(), lines);
        assert!(text.ends_with("  \"c\": {},\n  \"d\": []\n}"), "{text}");
        assert_eq!(prettied("\"hi\""), "\"hi\"");
    }
}
