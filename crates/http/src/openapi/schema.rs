//! Functions that build JSON schemas for the API's document.

use longshore_model::SECRET_NAME_PATTERN;
use serde_json::{Map, Value, json};

/// The schema of an object with these properties, some of them `required`.
pub(crate) fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The schema of a string.
pub(crate) fn text() -> Value {
    json!({ "type": "string" })
}

/// The schema of an integer of at least 0.
pub(crate) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// The schema of a time in RFC 3339.
pub(crate) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

/// The schema of an object with strings as values.
pub(crate) fn texts_by_name() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

/// The schema of an environment: an object whose values are strings or name secrets.
pub(crate) fn environment() -> Value {
    let name = json!({ "type": "string", "pattern": SECRET_NAME_PATTERN });
    let mut secret = object(&[("secret", name)], &["secret"]);
    secret["additionalProperties"] = json!(false);
    json!({ "type": "object", "additionalProperties": { "oneOf": [text(), secret] } })
}

/// The schema of an array.
pub(crate) fn array_of(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// The same schema, for a value that can also be null.
pub(crate) fn or_null(mut schema: Value) -> Value {
    schema["nullable"] = json!(true);
    schema
}

/// A reference to the schema with this name.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The same schema with an example.
pub(crate) fn with_example(mut schema: Value, example: Value) -> Value {
    schema["example"] = example;
    schema
}
