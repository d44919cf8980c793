//! `/v1/networkvolumes`: directories that the workers of several endpoints share.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use longshore_engine::Engine;
use longshore_model::{NetworkVolume, SharedWith, VolumeId};
use serde_json::{Value, json};

use super::access::{may_manage, may_read};
use super::etag::{ETag, IfMatch};
use super::fields::{Verb, read_members};
use super::from_fields::{Creation, EXAMPLE, changed_volume, new_volume};
use super::references::resolve_endpoints;
use super::volume_fields::VOLUME_FIELDS;
use super::{PathId, list_all, read_body, schemas, to_the_end, views};
use crate::HttpState;
use crate::openapi::schema::with_example;
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;

const ALL: &str = "/v1/networkvolumes";
const ONE: &str = "/v1/networkvolumes/{networkVolume}";

/// The operations on network volumes.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListNetworkVolumes", ALL, list)
            .summary("every network volume")
            .lists("NetworkVolume"),
        Operation::post("CreateNetworkVolume", ALL, create)
            .summary("makes a network volume")
            .about("Workers of endpoints that name it find its directory in `LONGSHORE_VOLUME_PATH`.")
            .takes("NetworkVolumeCreateInput")
            .gives("NetworkVolume")
            .tagged(),
        Operation::get("GetNetworkVolume", ONE, get)
            .summary("one network volume")
            .gives("NetworkVolume")
            .tagged(),
        Operation::patch("UpdateNetworkVolume", ONE, update)
            .summary("changes what is sent")
            .takes("NetworkVolumeUpdateInput")
            .gives("NetworkVolume")
            .tagged(),
        Operation::post("UpdateNetworkVolumeByPost", format!("{ONE}/update"), update)
            .summary("the same as PATCH")
            .takes("NetworkVolumeUpdateInput")
            .gives("NetworkVolume")
            .tagged(),
        Operation::delete("DeleteNetworkVolume", ONE, delete)
            .summary("deletes a network volume that no endpoint uses, with what is in it")
            .tagged(),
    ];
    let create = json!({ "name": "weights", "size": 200, "dataCenterId": "cellar" });
    let made = new_volume(create.as_object().cloned().unwrap_or_default(), EXAMPLE);
    let example = made.map_or(Value::Null, |volume| views::volume(&volume));
    let schemas = vec![
        ("NetworkVolume", with_example(schemas::read(VOLUME_FIELDS), example)),
        (
            "NetworkVolumeCreateInput",
            with_example(schemas::sent(VOLUME_FIELDS, Verb::Create, &["name", "size"]), create),
        ),
        (
            "NetworkVolumeUpdateInput",
            with_example(schemas::sent(VOLUME_FIELDS, Verb::Update, &[]), json!({ "size": 400 })),
        ),
    ];
    let about = "Directories that outlive workers, and that the workers of several endpoints share.";
    Group { name: "Network volumes", about, operations, schemas }
}

async fn create(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let mut members = read_members(VOLUME_FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    resolve_endpoints(state.engine(), &mut members, &SharedWith::default())?;
    let creation = Creation { entropy: state.engine().entropy(), at: state.engine().now(), by: &key.id };
    let volume = new_volume(members, creation)?;
    let stored =
        to_the_end(&state, |state| async move { Ok(state.engine().create_volume(volume).await?) }).await?;
    tracing::info!(volume = %stored.id, by = %key.id, "network volume created");
    Ok(ETag::of(state.engine(), &stored).answer(views::volume(&stored)))
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = |volume: &NetworkVolume| (volume.created_at, volume.id.to_string());
    list_all((&state, &uri, &headers), Engine::volumes, key, views::volume)
}

async fn get(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    let volume = state.engine().volume(&parse(&id)?).ok_or_else(no_such_volume)?;
    Ok(ETag::of(state.engine(), &volume).answer_look(&headers, views::volume(&volume)))
}

async fn update(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    let mut members = read_members(VOLUME_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    let present = state.engine().volume(&id).ok_or_else(no_such_volume)?;
    resolve_endpoints(state.engine(), &mut members, &present.endpoints)?;
    let expected = IfMatch::of(&headers);
    let stored = to_the_end(&state, |state| async move {
        let engine = state.engine();
        let change = |volume: &mut NetworkVolume| {
            expected.check(engine, volume)?;
            *volume = changed_volume(volume, members)?;
            Ok(())
        };
        engine.update_volume(&id, change).await
    })
    .await?;
    tracing::info!(volume = %stored.id, by = %key.id, "network volume changed");
    Ok(ETag::of(state.engine(), &stored).answer(views::volume(&stored)))
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    state.engine().volume(&id).ok_or_else(no_such_volume)?;
    let expected = IfMatch::of(&headers);
    to_the_end(&state, |state| async move {
        let engine = state.engine();
        Ok(engine.delete_volume(&id, |volume| expected.is_met(engine, volume)).await?)
    })
    .await?;
    tracing::info!(volume = %id, by = %key.id, "network volume deleted");
    Ok(StatusCode::NO_CONTENT)
}

fn parse(id: &str) -> Result<VolumeId, ApiError> {
    id.parse().map_err(|_| no_such_volume())
}

fn no_such_volume() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "network_volume_not_found", "no network volume has this id")
}
