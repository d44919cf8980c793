//! `/v1/openapi.json`: the API's document, for people and for generators of clients. The route needs no key.

use std::sync::OnceLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::docs;
use crate::openapi::{Group, Operation, document};

/// The operations that show the document.
pub(super) fn group() -> Group {
    let openapi = Operation::get("GetOpenAPI", "/v1/openapi.json", openapi)
        .summary("this document")
        .gives("OpenAPI")
        .open();
    let operations = [openapi].into_iter().chain(docs::operations()).collect();
    Group {
        name: "Document",
        about: "What this API is, for people and programs.",
        operations,
        schemas: vec![("OpenAPI", json!({ "type": "object", "description": "an OpenAPI 3.0.3 document" }))],
    }
}

/// The document. It is built once per process.
pub(super) fn made() -> &'static Value {
    static MADE: OnceLock<Value> = OnceLock::new();
    MADE.get_or_init(|| document(&crate::management::documented_groups()))
}

async fn openapi() -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = TEXT.get_or_init(|| Bytes::from(made().to_string()));
    ([(CONTENT_TYPE, "application/json")], text.clone()).into_response()
}
