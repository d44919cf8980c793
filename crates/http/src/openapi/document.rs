//! Builds the API's document, in `OpenAPI` 3.0.3, from the operations.

use serde_json::{Map, Value, json};

use super::parameter::{IF_MATCH, IF_NONE_MATCH, Parameter};
use super::responses::{self, json_content};
use super::schema::{object, reference, text, with_example};
use super::{Group, Operation, ResponseKind};

/// The version of the API that the document describes; the specification fixes it.
const API_VERSION: &str = "0.1.0";

const ABOUT: &str = "Serverless queue endpoints on your own machines. `/v1` manages endpoints and what belongs to \
    them, `/v2` takes jobs and returns results, `/lb` forwards requests to HTTP servers. Send the key as `Authorization: Bearer <key>`.";

/// The document of all operations in `groups`.
pub(crate) fn document(groups: &[Group]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert("Error".to_owned(), error());
    for group in groups {
        for operation in &group.operations {
            let path = paths.entry(operation.document_path()).or_insert_with(|| json!({}));
            path[operation.method] = describe(operation, group.name);
        }
        schemas.extend(group.schemas.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    }
    let tags: Vec<_> =
        groups.iter().map(|group| json!({ "name": group.name, "description": group.about })).collect();
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Longshore",
            "description": ABOUT,
            "version": API_VERSION,
            "license": { "name": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "this server" }],
        "security": [{ "key": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "headers": responses::headers(),
            "responses": responses::refusals(),
            "schemas": schemas,
        },
    })
}

/// The schema of error responses.
fn error() -> Value {
    let shape = object(&[("error", text()), ("code", text())], &["error", "code"]);
    let example = json!({ "error": "`workersMx` is not a field; the nearest known field is `workersMax`", "code": "unknown_field" });
    with_example(shape, example)
}

fn describe(operation: &Operation, tag: &str) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [tag],
        "summary": operation.summary,
        "responses": responses::of(operation),
    });
    if !operation.about.is_empty() {
        described["description"] = json!(operation.about);
    }
    let parameters = operation.every_parameter();
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(name) = operation.takes {
        described["requestBody"] = json!({ "required": true, "content": json_content(&reference(name)) });
    }
    if let Some(content_type) = operation.takes_bytes {
        let content = json!({ content_type: { "schema": { "type": "string", "format": "binary" } } });
        described["requestBody"] = json!({ "required": !operation.is_body_optional, "content": content });
    }
    if operation.open {
        described["security"] = json!([]);
    }
    described
}

impl Operation {
    /// The path as the document has it: `/v1/templates/{templateId}` for `/v1/templates/{template}`.
    pub(crate) fn document_path(&self) -> String {
        let named = |part: &str| part.strip_prefix('{').map(|rest| format!("{{{}", document_name(rest)));
        let parts = self.path.split('/').map(|part| named(part).unwrap_or_else(|| part.to_owned()));
        parts.collect::<Vec<_>>().join("/")
    }

    /// The method in lower case, such as `get`.
    pub(crate) fn method(&self) -> &'static str {
        self.method
    }

    fn every_parameter(&self) -> Vec<Value> {
        let names = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let in_path = names.map(|name| {
            let name = document_name(&format!("{name}}}"));
            json!({ "name": name.trim_end_matches('}'), "in": "path", "required": true, "schema": { "type": "string" } })
        });
        let precondition = match (self.tagged, self.method) {
            (true, "get") => Some(IF_NONE_MATCH),
            (true, _) if self.changes_tagged() => Some(IF_MATCH),
            _ => None,
        };
        let others = self.parameters.iter().chain(&precondition).map(Parameter::describe);
        in_path.chain(others).collect()
    }

    /// Whether the operation changes an existing resource with an `ETag`.
    pub(super) fn changes_tagged(&self) -> bool {
        self.tagged && self.method != "get" && self.path.contains('{')
    }

    /// Whether the response is a list in pages.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.gives, ResponseKind::Many(_)) && self.parameters.iter().any(Parameter::is_cursor)
    }
}

/// The name of a path parameter, with its closing brace: `templateId}` for `template}`. A wildcard such as `*route}` is no
/// id and only loses the `*`.
fn document_name(name: &str) -> String {
    name.strip_prefix('*').map_or_else(|| name.replace('}', "Id}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Value {
        document(&crate::management::documented_groups())
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = made();
        let text = document.to_string();
        for rest in text.split("\"#/").skip(1) {
            let pointer = format!("/{}", rest.split('"').next().unwrap());
            assert!(document.pointer(&pointer).is_some(), "{pointer} is not there");
        }
    }

    #[test]
    fn every_schema_is_used() {
        let document = made();
        let text = document.to_string();
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("#/components/schemas/{name}\"")), "nothing names {name}");
        }
    }

    #[test]
    fn a_page_of_jobs_is_described_with_their_times() {
        let document = made();
        let answer = &document["paths"]["/v2/{endpointId}/requests"]["get"]["responses"]["200"];
        let schema = &answer["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(schema, "#/components/schemas/RequestPage");
        let job = &document["components"]["schemas"]["ListedJob"]["properties"];
        assert_eq!((&job["startedAt"]["nullable"], &job["status"]["type"]), (&json!(true), &json!("string")));
    }

    #[test]
    fn fields_are_described_with_type_limits_and_default() {
        let document = made();
        let created = &document["components"]["schemas"]["EndpointCreateInput"]["properties"];
        let expected = json!({
            "type": "integer", "minimum": 1, "maximum": 3_600, "default": 5,
            "description": "seconds a worker may idle"
        });
        assert_eq!(created["idleTimeout"], expected);
        assert!(created["id"].is_null());
        let updated = &document["components"]["schemas"]["EndpointUpdateInput"]["properties"];
        assert!(updated["template"].is_null() && updated["idleTimeout"]["default"].is_null());
        let read = &document["components"]["schemas"]["Endpoint"]["properties"];
        assert_eq!(read["template"], json!({ "$ref": "#/components/schemas/Template" }));
    }

    #[test]
    fn what_can_be_changed_under_a_condition_says_so() {
        let document = made();
        let one = &document["paths"]["/v1/templates/{templateId}"];
        let has = |operation: &Value, name: &str| {
            operation["parameters"].as_array().unwrap().iter().any(|parameter| parameter["name"] == name)
        };
        assert!(has(&one["patch"], "If-Match") && has(&one["delete"], "If-Match"));
        assert!(has(&one["get"], "If-None-Match") && !one["get"]["responses"]["304"].is_null());
        assert!(!one["patch"]["responses"]["412"].is_null());
        let all = &document["paths"]["/v1/templates"];
        assert!(all["post"]["responses"]["412"].is_null());
        assert!(!all["post"]["responses"]["200"]["headers"]["ETag"].is_null());
        assert!(!all["get"]["responses"]["200"]["headers"]["Link"].is_null());
    }
}
