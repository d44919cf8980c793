//! `/v1/code`: uploaded archives of folders with handlers, which templates run.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use longshore_engine::Engine;
use longshore_model::limits::CODE_BODY_BYTES_MAX;
use longshore_model::{CodeHash, Endpoint, Template};
use serde_json::{Value, json};

use super::JsonResult;
use super::access::{may_manage, may_manage_endpoint, may_read, may_read_endpoint};
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
const LISTED: &[Parameter] = &[
    query("name", ParameterKind::Form(PATTERN), "the name that all versions of the code share"),
    query(
        "endpoint",
        ParameterKind::Text,
        "instead of `name`: the id or slug of an endpoint that runs deployed code; a key that reads it may list its code",
    ),
];
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
            .about("With `endpoint`, those of the name under which the present code of the endpoint is stored.")
            .gives_many("CodeVersion")
            .with(LISTED)
            .refuses(404),
        Operation::post("CreateCode", "/v1/code", create)
            .summary("stores the archive of a folder with a handler")
            .about(
                "A gzipped tar of files and folders, and nothing else. A template runs it with the `workdir` of the answer, \
                 `code:` and the hash, and without a command of its own. The same archive is the same version: `changed` is \
                 false if the server had all of its files, and true if it was new, or if files were missing or differed and \
                 are written again.",
            )
            .takes_bytes("application/gzip")
            .gives("KeptCode")
            .with(OWNER)
            .refuses(404),
    ];
    let mut members = vec![
        ("name", text()),
        ("hash", text()),
        ("workdir", text()),
        ("command", array_of(&text())),
        ("files", count()),
        ("bytes", count()),
        ("createdAt", time()),
    ];
    let all = |members: &[(&'static str, Value)]| {
        let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
        object(members, &names)
    };
    let version = all(&members);
    members.push(("changed", json!({ "type": "boolean" })));
    let kept = all(&members);
    let about = "Deployed folders with handlers.";
    Group { name: "Code", about, operations, schemas: vec![("CodeVersion", version), ("KeptCode", kept)] }
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    let query = Query::of(&uri);
    let files = Arc::clone(state.files());
    let endpoint = query.as_ref().ok().and_then(|query| query.get("endpoint"));
    let versions = if let Some(endpoint) = endpoint {
        let (_, endpoint) = may_read_endpoint(&state, &headers, endpoint)?;
        if query?.get("name").is_some() {
            return Err(both_sent());
        }
        let record = endpoint.record();
        let template = state.engine().catalog().template(&record.template_id);
        blocking(move || versions_of(&*files, &record, template.as_deref())).await?
    } else {
        may_read(&state, &headers)?;
        let name = name(&query?)?;
        blocking(move || files.code_versions(&name)).await?
    };
    Ok(Value::Array(versions.iter().map(view).collect()).into())
}

/// The versions under the names that the code of an endpoint has: the one of its present code, and the endpoint's id.
fn versions_of(
    files: &dyn FileService,
    endpoint: &Endpoint,
    template: Option<&Template>,
) -> Vec<CodeVersion> {
    let workdir = template.and_then(|template| template.workdir.as_deref());
    let present = workdir.and_then(CodeHash::in_workdir).and_then(Result::ok);
    let name = present.and_then(|code| files.code_name(&code));
    let own = endpoint.id.to_string();
    let mut versions =
        name.filter(|name| *name != own).map_or_else(Vec::new, |name| files.code_versions(&name));
    versions.extend(files.code_versions(&own));
    versions.sort_by_key(|version| Reverse((version.created_at, version.hash.clone())));
    versions
}

fn both_sent() -> ApiError {
    ApiError::bad_request("bad_parameter", "send either `name` or `endpoint`, not both")
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
            return Err(both_sent());
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
    let kept = blocking(keep).await?.map_err(|error| match error {
        CodeError::Unusable(text) => ApiError::bad_request("bad_archive", text),
        CodeError::Unavailable(text) => {
            tracing::warn!(error = %text, "code not stored");
            ApiError::unavailable("unavailable", "the server cannot keep the code at the moment; ask again")
        }
    })?;
    let version = &kept.version;
    tracing::info!(name = %version.name, hash = %version.hash, by = %key.id, "code kept");
    let mut view = view(version);
    view["changed"] = json!(kept.is_changed);
    Ok(view.into())
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
