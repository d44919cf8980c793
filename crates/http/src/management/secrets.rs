//! `/v1/secrets`: values that templates name in their environment. Requests set a value; no response has it.

use std::sync::Arc;

use http::HeaderMap;
use longshore_engine::{EndpointHandle, TrackedKey};
use longshore_model::limits::SECRET_BYTES_MAX;
use longshore_model::{Permission, Secret, SecretName, Template};
use serde_json::{Map, Value, json};

use super::fields::Field;
use super::from_fields::{Creation, changed_record, new_record};
use super::operations::{operations, schemas};
use super::references::{
    may_change_secret, may_name_secret, own_endpoints, permitted_endpoint, secrets_to_name,
};
use super::secret_fields::SECRET_FIELDS;
use super::shared_resource::{SharedResource, create, delete, get, list, update};
use super::views;
use crate::HttpState;
use crate::gate::auth;
use crate::gate::caller::Caller;
use crate::openapi::Group;
use crate::wire::api_error::ApiError;
use crate::wire::did_you_mean::nearest;

/// The operations on secrets.
pub(super) fn group() -> Group {
    let [list, create, get, update, update_by_post, delete] = operations!(
        "Secret",
        "Secrets",
        "/v1/secrets",
        "/v1/secrets/{secret}",
        [list::<Secret>, create::<Secret>, get::<Secret>, update::<Secret>, delete::<Secret>],
    );
    let operations = vec![
        list.summary("every secret, without its value"),
        create.summary("stores a secret").about(
            "No response has the value. A key that is limited to endpoints creates a secret that is shared with these.",
        ),
        get.summary("one secret, without its value"),
        update.about(
            "Endpoints whose template names the secret get a new `version` if the value changes, so that workers get the new one.",
        ),
        update_by_post,
        delete.summary("deletes a secret that no template names"),
    ];
    let read = json!({
        "name": "HF_TOKEN", "endpoints": [], "sealed": true, "usedBy": { "templates": [], "endpoints": [] },
        "createdAt": "2026-01-31T12:00:00.000Z", "updatedAt": "2026-01-31T12:00:00.000Z",
    });
    let schemas = schemas!(
        "Secret",
        SECRET_FIELDS,
        Secret::REQUIRED,
        {
            read: read,
            create: json!({ "name": "HF_TOKEN", "value": "a token" }),
            update: json!({ "value": "a new token" }),
        },
    );
    let about =
        "Values that the environment of templates names in place of a text. They are stored encrypted.";
    Group { name: "Secrets", about, operations, schemas }
}

impl SharedResource for Secret {
    const NAME: &'static str = "secret";
    const NOT_FOUND: (&'static str, &'static str) = ("secret_not_found", "no secret has this name");
    const FIELDS: &'static [Field] = SECRET_FIELDS;
    const REQUIRED: &'static [&'static str] = &["name", "value"];
    const SHOWS_MORE: bool = true;

    fn view(&self, state: &HttpState, key: &TrackedKey) -> Value {
        let catalog = state.engine().catalog();
        let may_read = permitted_endpoint(state, key, Permission::ReadCatalog);
        let (mut templates, mut endpoints) = (Vec::new(), Vec::new());
        for template in catalog.templates_naming(&self.name) {
            let users = catalog.endpoints_using(&template.id);
            let shown: Vec<_> = users.iter().map(EndpointHandle::id).filter(&may_read).collect();
            if auth::reads_catalog(state, key) || !shown.is_empty() {
                templates.push(template.id);
            }
            endpoints.extend(shown);
        }
        json!({
            "name": self.name, "endpoints": self.endpoints, "sealed": catalog.is_sealing(),
            "usedBy": { "templates": templates, "endpoints": endpoints },
            "createdAt": views::time(self.created_at), "updatedAt": views::time(self.updated_at),
        })
    }

    fn new(mut members: Map<String, Value>, creation: Creation<'_>) -> Result<Self, ApiError> {
        members.insert("updatedAt".to_owned(), json!(creation.at));
        // The name is the id.
        let name = members.get("name").cloned();
        checked(new_record(Self::FIELDS, Self::REQUIRED, name, members, creation.at)?)
    }

    fn changed(&self, members: Map<String, Value>) -> Result<Self, ApiError> {
        checked(changed_record(self, members)?)
    }

    fn may_create(state: &HttpState, headers: &HeaderMap) -> Result<Caller, ApiError> {
        auth::authorize_somewhere(state, headers, Permission::WriteCatalog)
    }

    fn complete(
        state: &HttpState,
        key: &TrackedKey,
        members: &mut Map<String, Value>,
    ) -> Result<(), ApiError> {
        own_endpoints(state, key, members)
    }

    fn may_change(state: &HttpState, key: &TrackedKey, name: Option<SecretName>) -> Result<(), ApiError> {
        may_change_secret(state, key, name.as_ref())
    }

    fn may_delete(state: &HttpState, key: &TrackedKey, name: Option<SecretName>) -> Result<(), ApiError> {
        may_change_secret(state, key, name.as_ref())
    }

    fn may_read(state: &HttpState, key: &TrackedKey, name: Option<SecretName>) -> Result<(), ApiError> {
        if auth::reads_catalog(state, key) { Ok(()) } else { may_name_secret(state, key, name.as_ref()) }
    }

    fn list_for(state: &HttpState, key: &TrackedKey) -> Result<Vec<Arc<Self>>, ApiError> {
        if auth::reads_catalog(state, key) {
            Ok(state.engine().catalog().secrets().into_iter().map(Arc::new).collect())
        } else if key.has_scope_for(Permission::WriteCatalog) {
            Ok(secrets_to_name(state, key))
        } else {
            Err(ApiError::unauthorized())
        }
    }

    fn users(&self, state: &HttpState) -> Vec<EndpointHandle> {
        state.engine().catalog().endpoints_with(&self.name)
    }
}

/// Refuses a value that is too long in bytes; the table of fields counts characters.
fn checked(secret: Secret) -> Result<Secret, ApiError> {
    let bytes = secret.value.len();
    if bytes <= SECRET_BYTES_MAX {
        return Ok(secret);
    }
    let text = format!("`value` has {bytes} bytes; it must have at most {SECRET_BYTES_MAX}");
    Err(ApiError::bad_request("bad_field", text))
}

/// Refuses an environment that names a secret which does not exist. The secrets that `before` names are not checked
/// again.
pub(super) fn check_secrets(
    state: &HttpState,
    template: &Template,
    before: Option<&Template>,
) -> Result<(), ApiError> {
    let catalog = state.engine().catalog();
    let is_known =
        |name: &SecretName| before.is_some_and(|before| before.secrets().any(|named| named == name));
    let missing = template.env.iter().find_map(|(variable, value)| {
        let name = value.secret_name().filter(|name| !is_known(name) && catalog.secret(name).is_none())?;
        Some((variable, name))
    });
    let Some((variable, name)) = missing else { return Ok(()) };
    let all = catalog.secrets();
    let hint = nearest(name.as_str(), all.iter().map(|secret| secret.name.as_str()))
        .map_or_else(String::new, |nearest| format!("; the nearest name is `{nearest}`"));
    let text = format!(
        "`env.{variable}` names secret `{name}`, which does not exist{hint}; `longshore secret set {name}` creates one"
    );
    Err(ApiError::bad_request("bad_field", text))
}
