//! An operation as a `curl` command for a shell.

use serde_json::Value;

/// The `curl` command for an operation, one argument per line.
pub(super) fn curl(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let mut lines = Vec::new();
    let verb = if method == "get" { String::new() } else { format!("-X {} ", method.to_uppercase()) };
    lines.push(format!("curl {verb}\"$LONGSHORE_URL{}\"", with_variables(path)));
    if operation.get("security").is_none() {
        lines.push("-H \"Authorization: Bearer $LONGSHORE_API_KEY\"".to_owned());
    }
    if let Some(reference) = operation.pointer("/requestBody/content/application~1json/schema/$ref") {
        let schema = reference.as_str().and_then(|text| document.pointer(text.trim_start_matches('#')));
        let example = schema.and_then(|schema| schema.get("example"));
        let body = example.map_or_else(|| "{}".to_owned(), Value::to_string);
        lines.push("-H \"Content-Type: application/json\"".to_owned());
        // In single quotes a shell has no escapes: close the text, write the quote, open the text again.
        lines.push(format!("-d '{}'", body.replace('\'', r"'\''")));
    }
    lines.join(" \\\n  ")
}

/// `/v1/templates/$TEMPLATE_ID` for `/v1/templates/{templateId}`.
fn with_variables(path: &str) -> String {
    let mut made = String::new();
    let mut is_name = false;
    for letter in path.chars() {
        match letter {
            '{' => {
                is_name = true;
                made.push('$');
            }
            '}' => is_name = false,
            upper if is_name && upper.is_uppercase() => made.extend(['_', upper]),
            lower if is_name => made.push(lower.to_ascii_uppercase()),
            other => made.push(other),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_has_what_the_operation_needs() {
        let document = json!({ "components": { "schemas": { "T": { "example": { "name": "it's" } } } } });
        let body = json!({ "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/T" } } } } });
        let expected = "curl -X PATCH \"$LONGSHORE_URL/v1/templates/$TEMPLATE_ID\" \\\n  \
            -H \"Authorization: Bearer $LONGSHORE_API_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  \
            -d '{\"name\":\"it'\\''s\"}'";
        assert_eq!(curl(&document, "/v1/templates/{templateId}", "patch", &body), expected);
        let open = json!({ "security": [] });
        assert_eq!(curl(&document, "/v1/docs", "get", &open), "curl \"$LONGSHORE_URL/v1/docs\"");
    }
}
