//! `/v1/containerregistryauth`: credentials for registries of container images. Requests set the password; no response
//! has it.

use longshore_engine::TrackedKey;
use longshore_model::{RegistryAuth, RegistryAuthId};
use serde_json::{Map, Value, json};

use super::fields::Field;
use super::from_fields::{Creation, EXAMPLE, new_record};
use super::operations::{operations, schemas};
use super::registry_auth_fields::REGISTRY_AUTH_FIELDS;
use super::shared_resource::{SharedResource, create, delete, get, list, update};
use super::views;
use crate::HttpState;
use crate::openapi::Group;
use crate::wire::api_error::ApiError;

/// The operations on credentials for registries.
pub(super) fn group() -> Group {
    type Auth = RegistryAuth;
    let [list, create, get, update, update_by_post, delete] = operations!(
        "ContainerRegistryAuth",
        "ContainerRegistryAuths",
        "/v1/containerregistryauth",
        "/v1/containerregistryauth/{containerRegistryAuth}",
        [list::<Auth>, create::<Auth>, get::<Auth>, update::<Auth>, delete::<Auth>],
    );
    let operations = vec![
        list.summary("every registry's credentials"),
        create
            .summary("stores credentials for a registry")
            .about("No response has `username` or `password`."),
        get.summary("one registry's credentials"),
        update.about(
            "The user name and the password cannot be changed: delete the credentials and create others.",
        ),
        update_by_post,
        delete.summary("deletes credentials that no template names"),
    ];
    let create = json!({ "name": "hub", "username": "ada", "password": "a token of the registry" });
    let made = RegistryAuth::new(create.as_object().cloned().unwrap_or_default(), EXAMPLE);
    let read = made.map_or(Value::Null, |auth| views::registry_auth(&auth));
    let schemas = schemas!(
        "ContainerRegistryAuth",
        REGISTRY_AUTH_FIELDS,
        RegistryAuth::REQUIRED,
        { read: read, create: create, update: json!({ "endpoints": "*" }) },
    );
    let about = "Credentials for registries with private container images.";
    Group { name: "Container registry auths", about, operations, schemas }
}

impl SharedResource for RegistryAuth {
    const NAME: &'static str = "container registry auth";
    const NOT_FOUND: (&'static str, &'static str) =
        ("container_registry_auth_not_found", "no container registry auth has this id");
    const FIELDS: &'static [Field] = REGISTRY_AUTH_FIELDS;
    const REQUIRED: &'static [&'static str] = &["name", "username", "password"];

    fn view(&self, _state: &HttpState, _key: &TrackedKey) -> Value {
        views::registry_auth(self)
    }

    fn new(members: Map<String, Value>, creation: Creation<'_>) -> Result<Self, ApiError> {
        let id = RegistryAuthId::mint(creation.entropy);
        new_record(Self::FIELDS, Self::REQUIRED, id, members, creation.at)
    }
}
