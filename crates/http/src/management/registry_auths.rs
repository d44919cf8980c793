//! `/v1/containerregistryauth`: credentials for registries of container images. The password is taken and never shown.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use longshore_engine::Engine;
use longshore_model::{RegistryAuth, RegistryAuthId, SharedWith};
use serde_json::{Value, json};

use super::access::{may_manage, may_read};
use super::etag::{ETag, IfMatch};
use super::fields::{Verb, read_members};
use super::from_fields::{Creation, EXAMPLE, changed_registry_auth, new_registry_auth};
use super::references::resolve_endpoints;
use super::registry_auth_fields::REGISTRY_AUTH_FIELDS;
use super::{PathId, list_all, read_body, schemas, to_the_end, views};
use crate::HttpState;
use crate::openapi::schema::with_example;
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;

const ALL: &str = "/v1/containerregistryauth";
const ONE: &str = "/v1/containerregistryauth/{containerRegistryAuth}";

/// The operations on credentials for registries.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListContainerRegistryAuths", ALL, list)
            .summary("every registry's credentials")
            .lists("ContainerRegistryAuth"),
        Operation::post("CreateContainerRegistryAuth", ALL, create)
            .summary("keeps credentials for a registry")
            .about("Nobody can read `username` and `password` afterwards.")
            .takes("ContainerRegistryAuthCreateInput")
            .gives("ContainerRegistryAuth")
            .tagged(),
        Operation::get("GetContainerRegistryAuth", ONE, get)
            .summary("one registry's credentials")
            .gives("ContainerRegistryAuth")
            .tagged(),
        Operation::patch("UpdateContainerRegistryAuth", ONE, update)
            .summary("changes what is sent")
            .about("The credentials themselves stay: delete them and make others.")
            .takes("ContainerRegistryAuthUpdateInput")
            .gives("ContainerRegistryAuth")
            .tagged(),
        Operation::post("UpdateContainerRegistryAuthByPost", format!("{ONE}/update"), update)
            .summary("the same as PATCH")
            .takes("ContainerRegistryAuthUpdateInput")
            .gives("ContainerRegistryAuth")
            .tagged(),
        Operation::delete("DeleteContainerRegistryAuth", ONE, delete)
            .summary("deletes credentials that no template names")
            .tagged(),
    ];
    let create = json!({ "name": "hub", "username": "ada", "password": "a token of the registry" });
    let made = new_registry_auth(create.as_object().cloned().unwrap_or_default(), EXAMPLE);
    let example = made.map_or(Value::Null, |auth| views::registry_auth(&auth));
    let required = ["name", "username", "password"];
    let schemas = vec![
        ("ContainerRegistryAuth", with_example(schemas::read(REGISTRY_AUTH_FIELDS), example)),
        (
            "ContainerRegistryAuthCreateInput",
            with_example(schemas::sent(REGISTRY_AUTH_FIELDS, Verb::Create, &required), create),
        ),
        (
            "ContainerRegistryAuthUpdateInput",
            with_example(schemas::sent(REGISTRY_AUTH_FIELDS, Verb::Update, &[]), json!({ "endpoints": "*" })),
        ),
    ];
    let about = "Credentials with which private container images are fetched.";
    Group { name: "Container registry auths", about, operations, schemas }
}

async fn create(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let mut members = read_members(REGISTRY_AUTH_FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    resolve_endpoints(state.engine(), &mut members, &SharedWith::default())?;
    let creation = Creation { entropy: state.engine().entropy(), at: state.engine().now(), by: &key.id };
    let auth = new_registry_auth(members, creation)?;
    let stored =
        to_the_end(&state, |state| async move { Ok(state.engine().create_registry_auth(auth).await?) })
            .await?;
    tracing::info!(auth = %stored.id, by = %key.id, "container registry auth created");
    Ok(ETag::of(state.engine(), &stored).answer(views::registry_auth(&stored)))
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = |auth: &RegistryAuth| (auth.created_at, auth.id.to_string());
    list_all((&state, &uri, &headers), Engine::registry_auths, key, views::registry_auth)
}

async fn get(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    let auth = state.engine().registry_auth(&parse(&id)?).ok_or_else(no_such_auth)?;
    Ok(ETag::of(state.engine(), &auth).answer_look(&headers, views::registry_auth(&auth)))
}

async fn update(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    let mut members = read_members(REGISTRY_AUTH_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    let present = state.engine().registry_auth(&id).ok_or_else(no_such_auth)?;
    resolve_endpoints(state.engine(), &mut members, &present.endpoints)?;
    let expected = IfMatch::of(&headers);
    let stored = to_the_end(&state, |state| async move {
        let engine = state.engine();
        let change = |auth: &mut RegistryAuth| {
            expected.check(engine, auth)?;
            *auth = changed_registry_auth(auth, members)?;
            Ok(())
        };
        engine.update_registry_auth(&id, change).await
    })
    .await?;
    tracing::info!(auth = %stored.id, by = %key.id, "container registry auth changed");
    Ok(ETag::of(state.engine(), &stored).answer(views::registry_auth(&stored)))
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    state.engine().registry_auth(&id).ok_or_else(no_such_auth)?;
    let expected = IfMatch::of(&headers);
    to_the_end(&state, |state| async move {
        let engine = state.engine();
        Ok(engine.delete_registry_auth(&id, |auth| expected.is_met(engine, auth)).await?)
    })
    .await?;
    tracing::info!(auth = %id, by = %key.id, "container registry auth deleted");
    Ok(StatusCode::NO_CONTENT)
}

fn parse(id: &str) -> Result<RegistryAuthId, ApiError> {
    id.parse().map_err(|_| no_such_auth())
}

fn no_such_auth() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "container_registry_auth_not_found",
        "no container registry auth has this id",
    )
}
