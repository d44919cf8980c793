//! Schemas of the API's document, and what they are made of.

use serde_json::{Map, Value, json};

/// An object with these properties, of which some are always there.
pub(crate) fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A text.
pub(crate) fn text() -> Value {
    json!({ "type": "string" })
}

/// A whole number from 0 on.
pub(crate) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// A moment, RFC 3339.
pub(crate) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

/// An object of texts.
pub(crate) fn texts_by_name() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// An array.
pub(crate) fn array_of(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// The schema with this name.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A schema with an example.
pub(crate) fn with_example(mut schema: Value, example: Value) -> Value {
    schema["example"] = example;
    schema
}
