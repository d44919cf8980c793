//! `/v1/endpoints/{endpoint}/versions`: what an endpoint was changed to, and the return to an earlier version.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use longshore_engine::{EndpointVersion, NewVersion, TrackedKey, VersionContent, VersionEntry};
use longshore_model::{Endpoint, Template, TemplateId};
use serde_json::{Map, Value, json};

use super::access::{may_manage_endpoint, may_read_endpoint};
use super::code::check_code;
use super::deploy::DEPLOY_FIELDS;
use super::endpoint_fields::ENDPOINT_FIELDS;
use super::endpoints::{check_provider, check_webhook, shown};
use super::etag::{ETag, IfMatch};
use super::fields::{Access, Resource};
use super::from_fields::changed_endpoint;
use super::references::{SentCode, may_name};
use super::secrets::check_secrets;
use super::views::Extras;
use super::{JsonResult, PathId, PathIds, to_the_end};
use crate::HttpState;
use crate::openapi::schema::{array_of, count, object, text, time, with_example};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::rfc3339;

const PATH: &str = "/v1/endpoints/{endpoint}/versions";
const RESTORE: &str = "/v1/endpoints/{endpoint}/versions/{version}/restore";

/// The operations on versions.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListEndpointVersions", PATH, list)
            .summary("the changes of an endpoint and its template, newest first")
            .about(
                "A change of what workers are started with makes a new version. A change of the endpoint's own fields is one \
                 more entry of the present version. The newest 50 versions are kept, each with its 50 newest entries.",
            )
            .gives_many("EndpointVersion"),
        Operation::post("RestoreEndpointVersion", RESTORE, restore)
            .summary("brings an earlier version back, as a new version")
            .about(
                "The code, command line, image, `env` and fields of the endpoint become those of the version as it last was. \
                 The slug stays. Templates of other endpoints are not changed.",
            )
            .gives("Endpoint")
            .tagged(),
    ];
    let field = object(&[("name", text()), ("from", json!({})), ("to", json!({}))], &["name", "from", "to"]);
    let name =
        json!({ "type": "string", "description": "the name of the key; its id if the key is deleted" });
    let mut code = text();
    code["nullable"] = json!(true);
    let entry = object(
        &[
            ("version", count()),
            ("at", time()),
            ("by", text()),
            ("byName", name),
            ("fields", array_of(&field)),
            ("codeHash", code),
        ],
        &["version", "at", "by", "byName", "fields", "codeHash"],
    );
    let example = json!({
        "version": 2, "at": "2026-01-31T12:00:00.000Z", "by": "k7rt2m", "byName": "ci",
        "codeHash": null,
        "fields": [
            { "name": "imageName", "from": "hello:1", "to": "hello:2" },
            { "name": "env.TOKEN", "from": null, "to": "changed" },
        ],
    });
    let about = "The history of an endpoint, and the return to an earlier state.";
    Group {
        name: "Versions",
        about,
        operations,
        schemas: vec![("EndpointVersion", with_example(entry, example))],
    }
}

async fn list(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    let (_, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let versions = state.engine().catalog().versions(&endpoint.record());
    let entries = versions
        .iter()
        .flat_map(|version| version.entries.iter().rev().map(|entry| view(&state, version, entry)));
    Ok(Value::Array(entries.collect()).into())
}

fn view(state: &HttpState, version: &EndpointVersion, entry: &VersionEntry) -> Value {
    let by_name = state.engine().keys().name_or_id(&entry.by);
    json!({
        "version": version.version, "at": rfc3339(entry.at), "by": entry.by, "byName": by_name,
        "fields": entry.fields, "codeHash": version.code,
    })
}

async fn restore(
    State(state): State<HttpState>,
    PathIds([id, number]): PathIds,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let present = endpoint.record();
    let kept = number.parse().ok().and_then(|number| state.engine().catalog().version(&present, number));
    let kept = kept.ok_or_else(no_such_version)?;
    let content = kept.content.clone().ok_or_else(too_large)?;
    let used = state.engine().catalog().template(&present.template_id).ok_or_else(ApiError::internal)?;
    let (_, program) = restored(&state, &key, &content, &present)?;
    check_code(&state, &program, Some(&used)).await?;
    check_secrets(&state, &program, Some(&used))?;
    let expected = IfMatch::of(&headers);
    let by = Arc::clone(&key.key);
    let stored = to_the_end(&state, |state| async move {
        let change = |endpoint: &mut Endpoint, template: &mut Template| {
            // Checked on the stored record: another request may have changed it meanwhile.
            expected.check(state.engine(), endpoint)?;
            (*endpoint, *template) = restored(&state, &by, &content, endpoint)?;
            Ok(())
        };
        state.engine().deploy(present.id.as_str(), &by.id, NewVersion::IfChanged, change).await
    })
    .await?;
    let record = &stored.endpoint;
    endpoint.workers().outdated_drained(record.version).await;
    tracing::info!(endpoint = %record.id, version = record.version, by = %key.id, "version restored");
    let view = shown(&state, record, Some(&stored.template), Extras::default());
    Ok(ETag::of(state.engine(), &**record).answer(view))
}

/// The records with which a version comes back, if the key may name what they name.
fn restored(
    state: &HttpState,
    key: &TrackedKey,
    content: &VersionContent,
    present: &Endpoint,
) -> Result<(Endpoint, Template), ApiError> {
    let own = own_fields(&content.endpoint);
    let names_template = Map::from_iter([("templateId".to_owned(), json!(content.template.id))]);
    let named = json!({
        "endpoint": own,
        "template": {
            "containerRegistryAuthId": content.template.container_registry_auth_id, "env": content.template.env,
        },
    });
    may_name(state, key, DEPLOY_FIELDS, &object_of(named), &SentCode::default())?;
    if content.endpoint.webhook != present.webhook {
        check_webhook(state, &own)?;
    }
    check_provider(state.engine(), &own, Some(present.provider))?;
    let stored = state.engine().catalog().template(&content.template.id);
    let program = match stored {
        Some(stored)
            if may_name(state, key, ENDPOINT_FIELDS, &names_template, &SentCode::default()).is_ok() =>
        {
            content.program_on(Template::clone(&stored))
        }
        // The key may not use the template itself. The endpoint gets one of its own with the same program.
        Some(_) => Template { id: TemplateId::mint(state.engine().entropy()), ..content.template.clone() },
        None => content.template.clone(),
    };
    let mut endpoint = changed_endpoint(present, own, &program)?;
    endpoint.deployed_env.clone_from(&content.endpoint.deployed_env);
    Ok((endpoint, program))
}

/// The fields of an endpoint that come back with a version: those that clients set, without the slug, which is an
/// address, and without the template, whose program comes back.
fn own_fields(endpoint: &Endpoint) -> Map<String, Value> {
    let is_own = |name: &str| {
        let field = ENDPOINT_FIELDS.iter().find(|field| field.name == name);
        field.is_some_and(|field| {
            field.access == Access::Write && field.names != Some(Resource::Template) && name != "slug"
        })
    };
    let mut members = object_of(json!(endpoint));
    members.retain(|name, _| is_own(name));
    members
}

fn object_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        // Unreachable: records are structs with named fields.
        _ => Map::new(),
    }
}

fn no_such_version() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "version_not_found",
        "the endpoint has no version with this number, or it is no longer kept",
    )
}

fn too_large() -> ApiError {
    ApiError::bad_request(
        "version_too_large",
        "the version's fields and variables had more than 256 KiB, so only its history is kept",
    )
}
