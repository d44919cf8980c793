//! JSON schemas of resources, built from the tables of fields that requests are checked against.

use longshore_model::{SLUG_CHARS_MAX, SLUG_CHARS_MIN, SLUG_PATTERN};
use serde_json::{Map, Value, json};

use super::fields::{Access, Field, FieldKind, Verb};
use crate::openapi::schema::{environment, reference};

/// The pattern of texts without NUL, as arguments and environment of a process must be.
const WITHOUT_NUL: &str = r"^[^\x00]*$";

/// The schema of a resource as clients read it.
pub(super) fn read(fields: &[Field]) -> Value {
    let shown = || fields.iter().filter(|field| !matches!(field.access, Access::WriteOnly | Access::Hidden));
    let properties = shown().map(|field| (field.name.to_owned(), schema(field, None)));
    // Responses leave out unset fields, and objects that the request does not ask for.
    let is_optional = |field: &&Field| {
        field.nullable || matches!(field.kind, FieldKind::Object(_) | FieldKind::Objects | FieldKind::Members)
    };
    let required: Vec<_> = shown().filter(|field| !is_optional(field)).map(|field| field.name).collect();
    json!({ "type": "object", "properties": properties.collect::<Map<_, _>>(), "required": required })
}

/// The schema of a resource as clients send it with `verb`. The `required` fields must be sent.
pub(super) fn sent(fields: &[Field], verb: Verb, required: &[&str]) -> Value {
    let settable = fields.iter().filter(|field| match field.access {
        Access::Write | Access::Hidden => true,
        Access::Create | Access::WriteOnly => verb == Verb::Create,
        Access::Read => false,
    });
    let properties: Map<_, _> =
        settable.map(|field| (field.name.to_owned(), schema(field, Some(verb)))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The schema of one field as clients send it with `verb`, or as they read it for `None`.
fn schema(field: &Field, verb: Option<Verb>) -> Value {
    let mut schema = match field.kind {
        FieldKind::Text { chars_max } => {
            json!({ "type": "string", "maxLength": chars_max, "pattern": WITHOUT_NUL })
        }
        FieldKind::Secret { chars_max } => {
            json!({ "type": "string", "format": "password", "maxLength": chars_max, "pattern": WITHOUT_NUL })
        }
        FieldKind::Form { pattern, .. } => json!({ "type": "string", "pattern": pattern }),
        FieldKind::Forms { pattern, .. } => {
            json!({ "type": "array", "items": { "type": "string", "pattern": pattern } })
        }
        FieldKind::Slug => json!({
            "type": "string", "minLength": SLUG_CHARS_MIN, "maxLength": SLUG_CHARS_MAX, "pattern": SLUG_PATTERN,
        }),
        FieldKind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        FieldKind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        FieldKind::Flag => json!({ "type": "boolean" }),
        FieldKind::Word(words) => json!({ "type": "string", "enum": words }),
        FieldKind::Words(words) => json!({ "type": "array", "items": { "type": "string", "enum": words } }),
        FieldKind::Texts => json!({ "type": "array", "items": { "type": "string", "pattern": WITHOUT_NUL } }),
        FieldKind::Environment => environment(),
        FieldKind::Objects => json!({ "type": "array", "items": reference("Pod") }),
        FieldKind::ObjectsOf(fields) => {
            let item = if verb.is_none() { read(fields) } else { sent(fields, Verb::Create, &[]) };
            json!({ "type": "array", "items": item })
        }
        FieldKind::Time => json!({ "type": "string", "format": "date-time" }),
        FieldKind::Endpoints if verb.is_none() => json!({ "type": "array", "items": { "type": "string" } }),
        FieldKind::Endpoints => json!({ "oneOf": [
            { "type": "array", "items": { "type": "string" } },
            { "type": "string", "enum": ["*"] },
        ] }),
        FieldKind::Members | FieldKind::Json { is_object: true, .. } => json!({ "type": "object" }),
        FieldKind::Json { .. } => json!({}),
        FieldKind::Object(fields) if field.access == Access::Read => read(fields),
        // A `$ref` may have no siblings.
        FieldKind::Object(_) if verb.is_none() && field.name == "template" => return reference("Template"),
        FieldKind::Object(fields) if verb.is_none() => read(fields),
        FieldKind::Object(fields) => sent(fields, verb.unwrap_or(Verb::Create), &[]),
    };
    schema["description"] = json!(field.about);
    // A field that clients may set to null is left out of what they read.
    if field.nullable && (verb.is_some() || field.access == Access::Read) {
        schema["nullable"] = json!(true);
    }
    // Only for create: an update does not change a field that is not sent.
    if verb == Some(Verb::Create)
        && let Some(default) = field.default.and_then(|json| serde_json::from_str::<Value>(json).ok())
    {
        schema["default"] = default;
    }
    schema
}
