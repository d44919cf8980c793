//! `dockerArgs`: a command line as one text, in the syntax of a shell or as a JSON object with `cmd` and `entrypoint`.

use serde_json::{Map, Value, json};

use super::FieldError;

/// Parses a command line into the fields of a template.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, FieldError> {
    let mut fields = Map::new();
    if text.trim_start().starts_with('{') {
        let sent: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| FieldError::new(format!("`dockerArgs` is not a JSON object: {error}")))?;
        for (name, value) in sent {
            let field = match name.as_str() {
                "cmd" => "dockerStartCmd",
                "entrypoint" => "dockerEntrypoint",
                _ => {
                    return Err(FieldError::new(
                        "`dockerArgs` may have `cmd` and `entrypoint`, nothing else",
                    ));
                }
            };
            fields.insert(field.to_owned(), value);
        }
    } else {
        fields.insert("dockerStartCmd".to_owned(), json!(words(text)?));
    }
    Ok(fields)
}

/// Splits a command line into words. Quotes and backslashes work as in a shell; no other character is special.
fn words(text: &str) -> Result<Vec<String>, FieldError> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if letter == open => quote = None,
            (None | Some('"'), '\\') => {
                let escaped = letters.next();
                let escaped = escaped.ok_or_else(|| FieldError::new("`dockerArgs` ends with a backslash"))?;
                let literal = quote.is_some() && !matches!(escaped, '"' | '\\' | '$' | '`');
                let word = word.get_or_insert_default();
                word.extend(literal.then_some('\\'));
                word.push(escaped);
            }
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(FieldError::new("`dockerArgs` has a quote that does not end"));
    }
    words.extend(word);
    Ok(words)
}

/// Joins the words of a command line, with quotes where they are needed.
pub(super) fn write(parts: &[&str]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    let quoted = |part: &&str| {
        if !part.is_empty() && part.chars().all(plain) {
            return (*part).to_owned();
        }
        format!("'{}'", part.replace('\'', r"'\''"))
    };
    parts.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in [
            ("", &[][..]),
            ("python3 -u  main.py", &["python3", "-u", "main.py"]),
            (r#"bash -c "echo \"a b\" \x""#, &["bash", "-c", r#"echo "a b" \x"#]),
            (r"a\ b 'c \d' ''", &["a b", r"c \d", ""]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        for text in ["'a", "\"a", "a\\", "{", r#"{"cmd": ["a"], "other": 1}"#] {
            parse(text).unwrap_err();
        }
        let both = parse(r#"{"cmd": ["a b"], "entrypoint": ["c"]}"#).unwrap();
        assert_eq!(Value::Object(both), json!({ "dockerStartCmd": ["a b"], "dockerEntrypoint": ["c"] }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(parts: Vec<String>) {
            let borrowed: Vec<&str> = parts.iter().map(String::as_str).collect();
            let text = write(&borrowed);
            prop_assert_eq!(words(&text).unwrap(), parts);
        }
    }
}
