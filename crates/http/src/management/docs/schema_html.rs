//! Schemas as HTML.

use serde_json::Value;

use super::html::{escaped, prose};

/// The depth to which nested objects are shown. Deeper objects are links to their schemas.
const DEPTH_MAX: usize = 3;

/// A schema's kind in a few words, with a link where it has a name.
pub(super) fn kind(schema: &Value) -> String {
    if let Some(name) = named(schema) {
        return format!("<a href=\"#schema-{name}\">{name}</a>", name = escaped(name));
    }
    let kind = match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("object") if schema.get("additionalProperties").is_some_and(Value::is_object) => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        Some(kind) => schema["format"]
            .as_str()
            .map_or_else(|| escaped(kind), |format| escaped(&format!("{kind} ({format})"))),
        None => "any JSON".to_owned(),
    };
    if schema["nullable"] == true { format!("{kind} or null") } else { kind }
}

/// The limits of a value: range, length, pattern and default.
fn limits(schema: &Value) -> String {
    let mut limits = Vec::new();
    let mut say = |words: &str, value: &Value| {
        if !value.is_null() {
            limits.push(format!("{words} <code>{}</code>", escaped(&value.to_string())));
        }
    };
    say("default", &schema["default"]);
    say("from", &schema["minimum"]);
    say("to", &schema["maximum"]);
    say("characters at least", &schema["minLength"]);
    say("characters at most", &schema["maxLength"]);
    let words = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
    if let Some(words) = words {
        let words: Vec<_> = words
            .iter()
            .map(|word| format!("<code>{}</code>", escaped(word.as_str().unwrap_or_default())))
            .collect();
        limits.push(format!("one of {}", words.join(" ")));
    }
    // The pattern that excludes NUL is left out: nearly every text has it, and error texts name it.
    if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| !pattern.contains(r"\x00")) {
        limits.push(format!("like <code>{}</code>", escaped(pattern)));
    }
    limits.join(", ")
}

/// One row of a table: name, kind and description.
pub(super) fn row(name: &str, mark: &str, schema: &Value, about: &str) -> String {
    let limits = limits(schema);
    let limits = if limits.is_empty() { limits } else { format!("<br><small>{limits}</small>") };
    format!(
        "<tr><td><code>{}</code>{mark}</td><td>{}{limits}</td><td>{}</td></tr>\n",
        escaped(name),
        kind(schema),
        prose(about)
    )
}

/// The mark of a field that a request must have.
pub(super) const REQUIRED: &str = " <b>required</b>";
/// The mark of a field that every response has.
pub(super) const ALWAYS: &str = " <small>always</small>";

/// The fields of a schema in a `<details>` element. `mark` stands at the required fields.
pub(super) fn contents(document: &Value, schema: &Value, mark: &str) -> String {
    inner(document, schema, mark, 0)
}

fn inner(document: &Value, schema: &Value, mark: &str, depth: usize) -> String {
    let schema = resolved(document, schema);
    if schema["type"] == "array" {
        return inner(document, &schema["items"], mark, depth);
    }
    let Some(properties) = schema["properties"].as_object() else { return String::new() };
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut html = String::from("<table>\n");
    let mut nested = String::new();
    for (name, property) in properties {
        let about = property["description"].as_str().unwrap_or_default();
        let mark_here = if required.contains(&name.as_str()) { mark } else { "" };
        html.push_str(&row(name, mark_here, property, about));
        let below =
            if depth < DEPTH_MAX { inner(document, property, mark, depth + 1) } else { String::new() };
        if !below.is_empty() {
            let opener =
                format!("<details><summary><code>{}</code> {}</summary>\n", escaped(name), kind(property));
            nested.extend([opener.as_str(), &below, "</details>\n"]);
        }
    }
    html.push_str("</table>\n");
    html + &nested
}

/// The schema that a reference leads to, or the schema itself.
pub(super) fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target =
        schema["$ref"].as_str().and_then(|reference| document.pointer(reference.trim_start_matches('#')));
    target.unwrap_or(schema)
}

fn named(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// A JSON value over several lines, as a block of HTML.
pub(super) fn json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    format!("<pre><code>{}</code></pre>\n", escaped(&text))
}
