//! Parses Python literals: workers report errors as the text of a dictionary.

use serde_json::{Map, Number, Value};

/// The nesting limit of values.
const DEPTH_MAX: usize = 32;

/// Parses a Python literal. `None` for a text that is not one, or whose value JSON cannot express.
pub(super) fn parse(text: &str) -> Option<Value> {
    let mut rest = text.trim();
    let value = value(&mut rest, 0)?;
    rest.trim().is_empty().then_some(value)
}

fn value(rest: &mut &str, depth: usize) -> Option<Value> {
    *rest = rest.trim_start();
    if depth > DEPTH_MAX {
        return None;
    }
    match rest.chars().next()? {
        '{' => dictionary(rest, depth),
        '[' => sequence(rest, ']', depth),
        '(' => sequence(rest, ')', depth),
        '\'' | '"' => string(rest).map(Value::String),
        _ => word(rest),
    }
}

fn dictionary(rest: &mut &str, depth: usize) -> Option<Value> {
    let mut members = Map::new();
    take(rest, '{')?;
    while take(rest, '}').is_none() {
        let name = match value(rest, depth + 1)? {
            Value::String(name) => name,
            other => other.to_string(),
        };
        take(rest, ':')?;
        members.insert(name, value(rest, depth + 1)?);
        take(rest, ',').or_else(|| rest.starts_with('}').then_some(()))?;
    }
    Some(Value::Object(members))
}

fn sequence(rest: &mut &str, end: char, depth: usize) -> Option<Value> {
    let mut elements = Vec::new();
    *rest = rest.get(1..)?;
    while take(rest, end).is_none() {
        elements.push(value(rest, depth + 1)?);
        take(rest, ',').or_else(|| rest.starts_with(end).then_some(()))?;
    }
    Some(Value::Array(elements))
}

/// Removes a sign and the white space around it. `None` if the text does not start with the sign.
fn take(rest: &mut &str, sign: char) -> Option<()> {
    *rest = rest.trim_start();
    *rest = rest.strip_prefix(sign)?.trim_start();
    Some(())
}

fn word(rest: &mut &str) -> Option<Value> {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-._".contains(c))).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    match word {
        "None" => Some(Value::Null),
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        number => number.parse::<Number>().ok().map(Value::Number),
    }
}

fn string(rest: &mut &str) -> Option<String> {
    let mut characters = rest.char_indices();
    let (_, quote) = characters.next()?;
    let mut text = String::new();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            *rest = &rest[at + character.len_utf8()..];
            return Some(text);
        }
        if character != '\\' {
            text.push(character);
            continue;
        }
        let digits = match characters.next()?.1 {
            'n' => {
                text.push('\n');
                continue;
            }
            'r' => {
                text.push('\r');
                continue;
            }
            't' => {
                text.push('\t');
                continue;
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => {
                text.push(other);
                continue;
            }
        };
        let mut code = 0;
        for _ in 0..digits {
            code = code * 16 + characters.next()?.1.to_digit(16)?;
        }
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_python_writes() {
        for (text, expected) in [
            ("{'message': 'm', 'code': 1}", json!({"message": "m", "code": 1})),
            (
                "{'a': None, 'b': [True, False, 1.5, -2], 'c': (), 'd': {}}",
                json!({"a": null, "b": [true, false, 1.5, -2], "c": [], "d": {}}),
            ),
            (r#"{'m': 'it\'s "so"\n\x41\u00e4\\'}"#, json!({"m": "it's \"so\"\nAä\\"})),
            (r#"{'m': "it's"}"#, json!({"m": "it's"})),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_none() {
        for text in
            ["", "{", "{'a'}", "{'a': }", "hello", "'x", "{'a': 1} b", "<class 'X'>", "{'a': object()}"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in r#"[\[\](){}'",:\\ux0-9a-zNT .-]{0,60}"#) {
            let _ = parse(&text);
        }
    }
}
