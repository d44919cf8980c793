//! Members that are any JSON: records have their text, with the order of the names and the digits of the numbers as the
//! client sent them.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Field, FieldKind};

/// The members of an endpoint that are any JSON.
pub(super) const JSON_MEMBERS: [&str; 2] = ["example", "inputSchema"];

/// Replaces the values of such members by their text, without white space. `json` is the object that the members were
/// parsed from.
pub(super) fn keep_texts(
    fields: &[Field],
    members: &mut Map<String, Value>,
    json: &[u8],
) -> serde_json::Result<()> {
    if !fields.iter().any(|field| has_json(field.kind) && members.contains_key(field.name)) {
        return Ok(());
    }
    let texts: BTreeMap<String, &RawValue> = serde_json::from_slice(json)?;
    for field in fields {
        let (Some(value), Some(text)) = (members.get_mut(field.name), texts.get(field.name)) else {
            continue;
        };
        match (field.kind, value) {
            (FieldKind::Json { .. }, value) if !value.is_null() => {
                *value = Value::String(compact(text.get()));
            }
            (FieldKind::Object(inner), Value::Object(members)) => {
                keep_texts(inner, members, text.get().as_bytes())?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_json(kind: FieldKind) -> bool {
    match kind {
        FieldKind::Json { .. } => true,
        FieldKind::Object(fields) => fields.iter().any(|field| has_json(field.kind)),
        _ => false,
    }
}

/// A JSON text without white space and with the shortest form of its strings.
fn compact(json: &str) -> String {
    let mut compacted = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(|next: char| next == '"' || next.is_ascii_whitespace()) {
        let (before, from_here) = rest.split_at(at);
        compacted.push_str(before);
        let string = if from_here.starts_with('"') { string_at_start(from_here) } else { &from_here[..1] };
        // White space is no string, and neither is what only malformed text has.
        if let Ok(text) = serde_json::from_str::<String>(string) {
            compacted.push_str(&Value::String(text).to_string());
        }
        rest = &from_here[string.len()..];
    }
    compacted.push_str(rest);
    compacted
}

/// The JSON string that a text begins with, with its quotes.
fn string_at_start(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    &text[..end.map_or(text.len(), |end| end + 2)]
}

/// An endpoint as clients read it: the texts of [`JSON_MEMBERS`] are written as the JSON that they are.
#[derive(Debug)]
pub(super) struct EndpointView(pub(super) Map<String, Value>);

impl EndpointView {
    /// Sets a member of the view, and replaces one of this name. The value of one of [`JSON_MEMBERS`] is its text.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// The view as JSON text.
    pub(super) fn to_json(&self) -> String {
        // Serializing a map with texts as names cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for EndpointView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match value {
                Value::String(text) if JSON_MEMBERS.contains(&name.as_str()) => {
                    map.serialize_entry(name, &serde_json::from_str::<&RawValue>(text).ok())?;
                }
                value => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::json;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn white_space_and_escapes_go_and_order_and_digits_stay() {
        for (text, expected) in [
            (" { \"b\" : 1.50 ,\n\t\"a\" : [ 1e400, -0 ] }\r\n", r#"{"b":1.50,"a":[1e400,-0]}"#),
            (r#"["\u00e9 \" ] \\", "\/"]"#, r#"["é \" ] \\","/"]"#),
            (r#"{"a\"": "\\\\"}"#, r#"{"a\"":"\\\\"}"#),
            (r#""" "#, r#""""#),
            ("null", "null"),
        ] {
            assert_eq!(compact(text), expected);
        }
    }

    proptest! {
        #![proptest_config(longshore_hostile::cases(500))]

        #[test]
        fn a_text_keeps_its_value(text in json(&["a", "\u{e9}"])) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let compacted = compact(&text);
                prop_assert_eq!(serde_json::from_str::<Value>(&compacted).unwrap(), value);
                prop_assert_eq!(compact(&compacted), compacted);
            }
        }
    }
}
