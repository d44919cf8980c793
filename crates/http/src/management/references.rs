//! Permission to name resources in a request: templates, volumes, registries' credentials and code.
//!
//! A key with the scope `manage` for all endpoints may name every resource. A key that is limited to endpoints may name
//! a resource that one of its endpoints uses, and a resource that is shared with one of them (its field `endpoints`).
//! For every other name the answer is 401, so that a key cannot find out which other resources exist.

use std::sync::Arc;

use longshore_engine::{Engine, TrackedKey};
use longshore_model::{CodeHash, Endpoint, Permission, SharedWith, Template, TemplateId};
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldKind, Resource};
use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

/// The field with the endpoints that a resource is shared with.
const ENDPOINTS: &str = "endpoints";

/// Checks that a key may name every resource that the members of a request name.
///
/// # Errors
///
/// 401 for a resource that the key may not name.
pub(super) fn may_name(
    state: &HttpState,
    key: &TrackedKey,
    fields: &[Field],
    members: &Map<String, Value>,
) -> Result<(), ApiError> {
    if key.manages_all() {
        return Ok(());
    }
    let rights = Rights::of(state, key);
    if rights.permit_all(fields, members) { Ok(()) } else { Err(ApiError::unauthorized()) }
}

/// Checks that a key may change a template: with `manage` for all, or for every endpoint that uses the template. A key
/// that is limited to endpoints may not change a template that no endpoint uses.
pub(super) fn may_change_template(
    state: &HttpState,
    key: &TrackedKey,
    id: Option<TemplateId>,
) -> Result<(), ApiError> {
    if key.manages_all() {
        return Ok(());
    }
    let users = id.map_or_else(Vec::new, |id| state.engine().catalog().endpoints_using(&id));
    let now = auth::now_for(key, state);
    let may_change = |id| key.permits(Permission::WriteCatalog, Some(&id), now);
    if !users.is_empty() && users.iter().all(|user| may_change(user.id())) {
        Ok(())
    } else {
        Err(ApiError::unauthorized())
    }
}

/// The templates that a key limited to endpoints may change, ordered by id.
pub(super) fn templates_to_change(state: &HttpState, key: &TrackedKey) -> Vec<Arc<Template>> {
    let mut templates = Rights::of(state, key).templates;
    templates.sort_by_key(|template| template.id);
    templates.dedup_by_key(|template| template.id);
    templates.retain(|template| may_change_template(state, key, Some(template.id)).is_ok());
    templates
}

/// Replaces slugs in the field `endpoints` by ids, and `"*"` by a list. `known` are the endpoints of the stored record;
/// their ids are accepted even if the endpoints were deleted.
///
/// # Errors
///
/// 400 for an endpoint that does not exist, and for `"*"` beside other names.
pub(super) fn resolve_endpoints(
    engine: &Engine,
    members: &mut Map<String, Value>,
    known: &SharedWith,
) -> Result<(), ApiError> {
    let named = match members.get(ENDPOINTS) {
        None => return Ok(()),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) => vec!["*"],
    };
    let mut ids: Vec<String> = Vec::new();
    for name in named {
        let known = name.parse().ok().filter(|id| matches!(known, SharedWith::Only(ids) if ids.contains(id)));
        let id = match (name, known.or_else(|| engine.endpoint(name).map(|endpoint| endpoint.id()))) {
            ("*", _) => name.to_owned(),
            (_, Some(id)) => id.to_string(),
            (_, None) => {
                let text = format!("`{ENDPOINTS}` has {name:?}; no endpoint has this id or slug");
                return Err(ApiError::bad_request("bad_field", text));
            }
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.len() > 1 && ids.iter().any(|id| id == "*") {
        let text = format!("`{ENDPOINTS}` has \"*\" beside other names; send either");
        return Err(ApiError::bad_request("bad_field", text));
    }
    members.insert(ENDPOINTS.to_owned(), json!(ids));
    Ok(())
}

/// Removes endpoints that the key may not read from the field `endpoints` of a response.
pub(super) fn hide_others(state: &HttpState, key: &TrackedKey, view: &mut Value) {
    if auth::reads_catalog(state, key) {
        return;
    }
    let now = auth::now_for(key, state);
    if let Some(ids) = view.get_mut(ENDPOINTS).and_then(Value::as_array_mut) {
        ids.retain(|id| {
            let id = id.as_str().unwrap_or_default();
            id == "*" || id.parse().is_ok_and(|id| key.permits(Permission::ReadCatalog, Some(&id), now))
        });
    }
}

/// The resources that a key limited to endpoints may name.
struct Rights<'a> {
    engine: &'a Engine,
    /// The endpoints that the key manages.
    endpoints: Vec<Arc<Endpoint>>,
    /// The templates of these endpoints.
    templates: Vec<Arc<Template>>,
}

impl<'a> Rights<'a> {
    fn of(state: &'a HttpState, key: &TrackedKey) -> Self {
        let engine = state.engine();
        // The id of a deleted endpoint may be the slug of another endpoint.
        let found =
            |id| engine.endpoint(&format!("{id}")).map(|handle| handle.record()).filter(|it| it.id == id);
        let managed = key.endpoints_for(Permission::WriteCatalog);
        let endpoints: Vec<_> = managed.filter_map(|id| found(*id)).collect();
        let templates =
            endpoints.iter().filter_map(|it| engine.catalog().template(&it.template_id)).collect();
        Self { engine, endpoints, templates }
    }

    fn permit_all(&self, fields: &[Field], members: &Map<String, Value>) -> bool {
        fields.iter().all(|field| match (members.get(field.name), field.kind, field.names) {
            (Some(value), _, Some(resource)) => self.permit(resource, value),
            (Some(Value::Object(inner)), FieldKind::Object(fields), None) => self.permit_all(fields, inner),
            (Some(Value::Array(items)), FieldKind::ObjectsOf(fields), None) => {
                items.iter().filter_map(Value::as_object).all(|inner| self.permit_all(fields, inner))
            }
            // The field is not sent or names no resource.
            _ => true,
        })
    }

    /// Whether the key may name every text in a value.
    fn permit(&self, resource: Resource, value: &Value) -> bool {
        let texts: Vec<&str> = match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            // Some clients send an empty text for no resource.
            value => value.as_str().filter(|text| !text.is_empty()).into_iter().collect(),
        };
        match resource {
            Resource::Template => texts.iter().all(|id| self.template(id)),
            Resource::NetworkVolume => texts.iter().all(|id| id.is_empty() || self.volume(id)),
            Resource::RegistryAuth => texts.iter().all(|id| self.registry_auth(id)),
            Resource::Code => {
                texts.iter().all(|workdir| CodeHash::in_workdir(workdir).is_none() || self.code(workdir))
            }
            // Changing the list, even to an empty one, affects endpoints of other keys.
            Resource::Endpoint => false,
        }
    }

    fn template(&self, id: &str) -> bool {
        let shared = || {
            let template = id.parse().ok().and_then(|id| self.engine.catalog().template(&id));
            template.is_some_and(|template| self.is_shared(&template.endpoints))
        };
        self.endpoints.iter().any(|endpoint| endpoint.template_id.as_str() == id) || shared()
    }

    fn volume(&self, id: &str) -> bool {
        let shared = || {
            let volume = id.parse().ok().and_then(|id| self.engine.catalog().volume(&id));
            volume.is_some_and(|volume| self.is_shared(&volume.endpoints))
        };
        self.endpoints.iter().any(|endpoint| endpoint.volumes().any(|used| used == id)) || shared()
    }

    fn registry_auth(&self, id: &str) -> bool {
        let used = |template: &Arc<Template>| template.container_registry_auth_id.as_deref() == Some(id);
        let shared = || {
            let auth = id.parse().ok().and_then(|id| self.engine.catalog().registry_auth(&id));
            auth.is_some_and(|auth| self.is_shared(&auth.endpoints))
        };
        self.templates.iter().any(used) || shared()
    }

    /// Whether one of the endpoints runs this code.
    fn code(&self, workdir: &str) -> bool {
        self.templates.iter().any(|template| template.workdir.as_deref() == Some(workdir))
    }

    fn is_shared(&self, with: &SharedWith) -> bool {
        self.endpoints.iter().any(|endpoint| with.covers(&endpoint.id))
    }
}
