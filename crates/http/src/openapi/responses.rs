//! The responses of operations, as the document has them.

use serde_json::{Map, Value, json};

use super::schema::{array_of, reference};
use super::{Operation, ResponseKind};
use crate::wire::sse::EVENT_STREAM;

/// An error response: the status, the name in the document, the description and the headers.
type ErrorResponse = (u16, &'static str, &'static str, &'static [&'static str]);

const REFUSALS: &[ErrorResponse] = &[
    (400, "BadRequest", "the request is wrong; `error` says what, where, and what is allowed", &[]),
    (401, "Unauthorized", "the key is missing, unknown, or does not permit this", &["WWW-Authenticate"]),
    (404, "NotFound", "the resource in the path does not exist", &[]),
    (408, "RequestTimeout", "the body did not arrive in time", &[]),
    (409, "Conflict", "the idempotency key was used before with another body", &[]),
    (
        412,
        "PreconditionFailed",
        "the resource does not have the `ETag` that `If-Match` names; nothing was changed",
        &[],
    ),
    (413, "PayloadTooLarge", "the body is too large", &[]),
    (415, "UnsupportedMediaType", "the body's `Content-Encoding` is neither `gzip` nor `identity`", &[]),
    (
        429,
        "TooManyRequests",
        "too many requests or jobs; retry after `Retry-After` seconds",
        &["Retry-After", "RateLimit", "RateLimit-Policy"],
    ),
    (500, "InternalServerError", "the server failed to handle the request", &[]),
    (
        503,
        "ServiceUnavailable",
        "the server cannot handle the request at the moment; retry after `Retry-After` seconds",
        &["Retry-After"],
    ),
];

/// The headers of responses: name, type and description.
const HEADERS: &[(&str, &str, &str)] = &[
    ("X-Request-ID", "string", "the id of the request in the server's log"),
    ("ETag", "string", "changes whenever the resource does; for `If-Match` and `If-None-Match`"),
    ("Link", "string", "`<address>; rel=\"next\"` if there is a next page"),
    ("Retry-After", "integer", "seconds after which to retry"),
    ("RateLimit", "string", "the requests that remain in the rate limit"),
    ("RateLimit-Policy", "string", "the rate limit"),
    ("WWW-Authenticate", "string", "how to send a key"),
];

/// Every error response, by name.
pub(super) fn refusals() -> Value {
    let refusal = |(_, name, why, headers): &ErrorResponse| {
        let mut response = json!({ "description": why, "headers": header_references(headers) });
        response["content"] = json_content(&reference("Error"));
        ((*name).to_owned(), response)
    };
    Value::Object(REFUSALS.iter().map(refusal).collect())
}

/// Every header, by name.
pub(super) fn headers() -> Value {
    let header = |(name, kind, about): &(&str, &str, &str)| {
        ((*name).to_owned(), json!({ "schema": { "type": kind }, "description": about }))
    };
    Value::Object(HEADERS.iter().map(header).collect())
}

/// The responses of an operation, by status.
pub(super) fn of(operation: &Operation) -> Value {
    let mut responses = Map::new();
    let (status, mut success) = success(operation);
    if operation.events {
        // Without a type: tools disagree whether the schema is that of the whole stream or of one event.
        success["content"][EVENT_STREAM] = json!({ "schema": { "description": "server-sent events" } });
    }
    responses.insert(status.to_owned(), success);
    if operation.tagged && operation.method == "get" {
        let unchanged =
            json!({ "description": "the resource has not changed", "headers": header_references(&["ETag"]) });
        responses.insert("304".to_owned(), unchanged);
    }
    if let Some(schema) = operation.refuses_as {
        let mut refusal =
            json!({ "description": "there is no answer", "headers": header_references(&["Retry-After"]) });
        refusal["content"] = json_content(&reference(schema));
        responses.insert("default".to_owned(), refusal);
        return Value::Object(responses);
    }
    for (status, name, _, _) in REFUSALS.iter().filter(|(status, ..)| can_refuse(operation, *status)) {
        let response = json!({ "$ref": format!("#/components/responses/{name}") });
        responses.insert(status.to_string(), response);
    }
    Value::Object(responses)
}

fn success(operation: &Operation) -> (&'static str, Value) {
    let mut names = Vec::new();
    if operation.tagged && !matches!(operation.gives, ResponseKind::Nothing) {
        names.push("ETag");
    }
    if operation.is_list() {
        names.push("Link");
    }
    if operation.rated {
        names.extend(["RateLimit", "RateLimit-Policy"]);
    }
    let headers = header_references(&names);
    match operation.gives {
        ResponseKind::Nothing => ("204", json!({ "description": "done", "headers": headers })),
        ResponseKind::One(name) => (
            "200",
            json!({ "description": "done", "headers": headers, "content": json_content(&reference(name)) }),
        ),
        ResponseKind::Accepted(name) => {
            let content = json_content(&reference(name));
            ("202", json!({ "description": "it goes on by itself", "headers": headers, "content": content }))
        }
        ResponseKind::Many(name) => {
            let content = json_content(&array_of(&reference(name)));
            ("200", json!({ "description": "done", "headers": headers, "content": content }))
        }
        ResponseKind::Text(content_type) => {
            let content = json!({ content_type: { "schema": { "type": "string" } } });
            ("200", json!({ "description": "done", "headers": headers, "content": content }))
        }
    }
}

fn can_refuse(operation: &Operation, status: u16) -> bool {
    let has_body = operation.takes.is_some() || operation.takes_bytes.is_some();
    let names_something = operation.path.contains('{');
    operation.refusals.contains(&status)
        || match status {
            400 => has_body || names_something || !operation.parameters.is_empty(),
            401 | 503 => !operation.open,
            404 => names_something,
            408 | 413 | 415 => has_body,
            412 => operation.changes_tagged(),
            // Every key may have a rate limit of its own.
            429 => operation.rated || !operation.open,
            500 => true,
            _ => false,
        }
}

pub(super) fn json_content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn header_references(names: &[&str]) -> Value {
    let all = names.iter().chain(&["X-Request-ID"]);
    let header =
        |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    Value::Object(all.map(header).collect())
}
