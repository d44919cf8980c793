//! `/v1/code`: uploaded archives of folders with handlers, which templates run.

use std::cell::LazyCell;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use longshore_engine::Engine;
use longshore_model::limits::CODE_BODY_BYTES_MAX;
use longshore_model::{CodeHash, Template};
use serde_json::{Value, json};

use super::JsonResult;
use super::access::{may_manage, may_manage_endpoint, may_read};
use super::workers::blocking;
use crate::HttpState;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, text, time};
use crate::openapi::{Group, Operation};
use crate::services::files::{CodeError, CodeUpload, CodeVersion, FileService};
use crate::wire::api_error::ApiError;
use crate::wire::body;
use crate::wire::query::Query;
use crate::wire::rfc3339::rfc3339;

pub(super) const PATTERN: &str = "^[a-z0-9][a-z0-9-]{1,62}$";
const NAME: &[Parameter] =
    &[query("name", ParameterKind::Form(PATTERN), "the name that all versions of the code share").required()];
const OWNER: &[Parameter] = &[
    query("name", ParameterKind::Form(PATTERN), "the name that all versions of the code share"),
    query(
        "endpoint",
        ParameterKind::Text,
        "instead of `name`: the id or slug of the endpoint that the code is for; a key that manages it may send its code",
    ),
];

/// The operations on code.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListCode", "/v1/code", list)
            .summary("the versions of the code with a name, newest first")
            .gives_many("CodeVersion")
            .with(NAME),
        Operation::post("CreateCode", "/v1/code", create)
            .summary("stores the archive of a folder with a handler")
            .about(
                "A gzipped tar of files and folders, and nothing else. A template runs it with the `workdir` of the answer, \
                 `code:` and the hash, and without a command of its own. The same archive is the same version.",
            )
            .takes_bytes("application/gzip")
            .gives("CodeVersion")
            .with(OWNER)
            .refuses(404),
    ];
    let version = object(
        &[
            ("name", text()),
            ("hash", text()),
            ("workdir", text()),
            ("command", array_of(&text())),
            ("files", count()),
            ("bytes", count()),
            ("createdAt", time()),
        ],
        &["name", "hash", "workdir", "command", "files", "bytes", "createdAt"],
    );
    let about = "Deployed folders with handlers.";
    Group { name: "Code", about, operations, schemas: vec![("CodeVersion", version)] }
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    may_read(&state, &headers)?;
    let name = name(&Query::of(&uri)?)?;
    let files = Arc::clone(state.files());
    let versions = blocking(move || files.code_versions(&name)).await?;
    Ok(Value::Array(versions.iter().map(view).collect()).into())
}

async fn create(State(state): State<HttpState>, uri: Uri, headers: HeaderMap, body: Body) -> JsonResult {
    let query = Query::of(&uri);
    let endpoint = query.as_ref().ok().and_then(|query| query.get("endpoint"));
    let (key, endpoint) = match endpoint {
        Some(endpoint) => {
            let (key, endpoint) = may_manage_endpoint(&state, &headers, endpoint)?;
            (key, Some(endpoint.id()))
        }
        None => (may_manage(&state, &headers)?, None),
    };
    let query = query?;
    let (name, may_be_under_another_name) = match endpoint {
        Some(_) if query.get("name").is_some() => {
            return Err(ApiError::bad_request("bad_parameter", "send either `name` or `endpoint`, not both"));
        }
        Some(endpoint) => (endpoint.to_string(), true),
        None => (name(&query)?, false),
    };
    let archive = body::read(body, CODE_BODY_BYTES_MAX, state.budget()).await?;
    let (files, bytes, sender) = (Arc::clone(state.files()), archive.bytes.clone(), key.id.clone());
    let keep = move || {
        files.keep_code(CodeUpload {
            name: &name,
            may_be_under_another_name,
            archive: bytes,
            sender: &sender,
        })
    };
    let version = blocking(keep).await?.map_err(|error| match error {
        CodeError::Unusable(text) => ApiError::bad_request("bad_archive", text),
        CodeError::Unavailable(text) => {
            tracing::warn!(error = %text, "code not stored");
            ApiError::unavailable("unavailable", "the server cannot keep the code at the moment; ask again")
        }
    })?;
    tracing::info!(name = %version.name, hash = %version.hash, by = %key.id, "code kept");
    Ok(view(&version).into())
}

/// Starts removing code that no template and no version of an endpoint has used for a day. The server calls this periodically, but not at startup:
/// templates may start to use code in the next moment.
pub fn forget_unused_code(engine: &Engine, files: &dyn FileService) {
    let engine = engine.clone();
    // Read once, when the first code is looked at. A request that names code later restarts the code's day.
    let used = LazyCell::new(move || engine.catalog().code_in_use());
    files.forget_code(Box::new(move |code| used.contains(code)));
}

/// Refuses a `workdir` that names code which the server does not have. The `workdir` that `before` has is not checked
/// again.
pub(super) async fn check_code(
    state: &HttpState,
    template: &Template,
    before: Option<&Template>,
) -> Result<(), ApiError> {
    let named = template.workdir.as_deref();
    let Some(code) = named.and_then(CodeHash::in_workdir) else { return Ok(()) };
    if before.is_some_and(|before| before.workdir.as_deref() == named) {
        return Ok(());
    }
    let code = code.map_err(|error| ApiError::bad_request("bad_field", format!("`workdir`: {error}")))?;
    let files = Arc::clone(state.files());
    if blocking(move || files.has_code(&code)).await? {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "bad_field",
        "`workdir` names code that is not here: send it with POST /v1/code first",
    ))
}

/// The parameter `name` of a request about code or an image.
pub(super) fn name(query: &Query) -> Result<String, ApiError> {
    let name = query.get("name").unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let starts = name.bytes().next().is_some_and(fits);
    if starts && (2..=63).contains(&name.len()) && name.bytes().all(|byte| fits(byte) || byte == b'-') {
        return Ok(name.to_owned());
    }
    Err(ApiError::bad_request("bad_parameter", format!("`name` must be of the form {PATTERN}")))
}

fn view(version: &CodeVersion) -> Value {
    json!({
        "name": version.name, "hash": version.hash.as_str(), "workdir": version.hash.workdir(), "command": [],
        "files": version.files, "bytes": version.bytes, "createdAt": rfc3339(version.created_at),
    })
}
