//! `/graphql`: the queries and mutations with which the official Python SDK and command line manage endpoints.
//!
//! Every root field becomes requests to the management API of this server, with the key of the client, the same checks
//! and the same errors. The responses are converted to the types of the GraphQL schema ([`types`]).

mod command_line;
mod mutations;
mod queries;
mod query_text;
mod rest;
mod types;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use longshore_model::Permission;
use longshore_model::limits::MANAGEMENT_BODY_BYTES_MAX;
use serde_json::{Map, Value, json};

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;
use crate::wire::body;
use crate::wire::request_id::RequestId;
use query_text::{OperationKind, SelectedField};
use rest::ManagementClient;

/// The error of a root field.
#[derive(Debug)]
pub(crate) struct FieldError {
    message: String,
    code: String,
    /// Whether the key does not permit the request.
    unauthorized: bool,
}

impl FieldError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: "bad_query".to_owned(), unauthorized: false }
    }

    /// The key does not permit the field. The response is that of [`ApiError::unauthorized`].
    fn unauthorized() -> Self {
        Self { unauthorized: true, ..Self::new("") }
    }
}

/// The value of a root field, or its error.
type Resolved = Result<Value, FieldError>;

#[cfg(test)]
pub(crate) use types::mutations;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/graphql", post(answer))
}

async fn answer(
    State(state): State<HttpState>,
    request_id: Option<Extension<RequestId>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    // The key is checked for each root field, as the management API checks it.
    let key = auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?;
    let bytes = body::read(body, MANAGEMENT_BODY_BYTES_MAX, state.budget()).await?.bytes;
    let (kind, selected_fields) = match query_text::read(&bytes) {
        Ok(read) => read,
        Err(refusal) => return Ok(refused(StatusCode::BAD_REQUEST, None, &refusal)),
    };
    let rest = ManagementClient::new(state, &headers, request_id.map(|Extension(id)| id), key.key);
    let mut data = Map::new();
    for selected in &selected_fields {
        // In order, as GraphQL requires for mutations. The first failure ends the request.
        match resolve(&rest, kind, selected).await {
            Ok(value) => drop(data.insert(selected.key.clone(), value)),
            Err(refusal) if refusal.unauthorized => return Err(ApiError::unauthorized()),
            Err(refusal) => return Ok(refused(StatusCode::OK, Some(&selected.key), &refusal)),
        }
    }
    Ok(axum::Json(json!({ "data": data })).into_response())
}

/// Resolves one root field. The selected fields are checked before any request is made.
async fn resolve(rest: &ManagementClient, kind: OperationKind, selected: &SelectedField) -> Resolved {
    if selected.name == "__typename" {
        return Ok(json!(kind.type_name()));
    }
    let root = types::root(kind, &selected.name)?;
    root.check(selected)?;
    let value = match kind {
        OperationKind::Query => queries::resolve(rest, selected).await?,
        OperationKind::Mutation => mutations::resolve(rest, selected).await?,
    };
    Ok(root.show(selected, &value))
}

/// An error response in the form of GraphQL. The response has `data` only if the request was valid and the field at
/// `path` failed.
fn refused(status: StatusCode, path: Option<&str>, refusal: &FieldError) -> Response {
    let error = json!({ "message": refusal.message, "extensions": { "code": refusal.code } });
    let mut answer = json!({ "errors": [error] });
    if let Some(path) = path {
        answer["errors"][0]["path"] = json!([path]);
        answer["data"] = Value::Null;
    }
    (status, axum::Json(answer)).into_response()
}
