//! Permission to name resources in a request: templates, volumes, registries' credentials, secrets and code.
//!
//! A key with the scope `manage` for all endpoints may name every resource. A key that is limited to endpoints may name
//! a resource that one of its endpoints uses, and a resource that is shared with one of them (its field `endpoints`).
//! For every other name the answer is 401, so that a key cannot find out which other resources exist.

use std::sync::Arc;

use longshore_engine::{Engine, TrackedKey};
use longshore_model::{
    CodeHash, Endpoint, EndpointId, Permission, Secret, SecretName, SharedWith, Template, TemplateId,
};
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldKind, Resource};
use super::workers::blocking;
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
    sent: &SentCode,
) -> Result<(), ApiError> {
    if key.manages_all() {
        return Ok(());
    }
    let rights = Rights { sent: sent.0.clone(), ..Rights::of(state, key) };
    if rights.permit_all(fields, members) { Ok(()) } else { Err(ApiError::unauthorized()) }
}

/// The code that a request names and that its key has sent. Read before the permission is checked, because it is on disk.
#[derive(Default)]
pub(super) struct SentCode(Option<CodeHash>);

impl SentCode {
    /// Reads whether the key has sent the code that the members of a template name, also if they are in `template`.
    pub(super) async fn of(
        state: &HttpState,
        key: &TrackedKey,
        members: &Map<String, Value>,
    ) -> Result<Self, ApiError> {
        let template = members.get("template").and_then(Value::as_object).unwrap_or(members);
        let workdir = template.get("workdir").and_then(Value::as_str);
        let code = workdir.and_then(CodeHash::in_workdir).and_then(Result::ok);
        let Some(code) = code.filter(|_| !key.manages_all()) else { return Ok(Self(None)) };
        let (files, sender, named) = (Arc::clone(state.files()), key.id.clone(), code.clone());
        let is_sender = blocking(move || files.was_sent_by(&named, &sender)).await?;
        Ok(Self(is_sender.then_some(code)))
    }
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

/// Checks that a key may change or delete a secret: with `manage` for all, or if the secret and all that names it belong
/// to endpoints of the key. The secret is shared with some of them and with no other endpoint, and the key may change
/// every template that names it.
pub(super) fn may_change_secret(
    state: &HttpState,
    key: &TrackedKey,
    name: Option<&SecretName>,
) -> Result<(), ApiError> {
    if key.manages_all() {
        return Ok(());
    }
    let catalog = state.engine().catalog();
    let secret = name.and_then(|name| catalog.secret(name)).ok_or_else(ApiError::unauthorized)?;
    let is_own = permitted_endpoint(state, key, Permission::WriteCatalog);
    let shared_with_own = match &secret.endpoints {
        SharedWith::Every => false,
        SharedWith::Only(ids) => !ids.is_empty() && ids.iter().all(is_own),
    };
    let templates = catalog.templates_naming(&secret.name);
    if shared_with_own && templates.iter().all(|it| may_change_template(state, key, Some(it.id)).is_ok()) {
        Ok(())
    } else {
        Err(ApiError::unauthorized())
    }
}

/// Checks that a key may name a secret in an environment.
pub(super) fn may_name_secret(
    state: &HttpState,
    key: &TrackedKey,
    name: Option<&SecretName>,
) -> Result<(), ApiError> {
    let may_name = |name: &SecretName| key.manages_all() || Rights::of(state, key).secret(name);
    if name.is_some_and(may_name) { Ok(()) } else { Err(ApiError::unauthorized()) }
}

/// The secrets that a key limited to endpoints may name, oldest first.
pub(super) fn secrets_to_name(state: &HttpState, key: &TrackedKey) -> Vec<Arc<Secret>> {
    let rights = Rights::of(state, key);
    let secrets = state.engine().catalog().secrets().into_iter();
    secrets.filter(|secret| rights.secret(&secret.name)).map(Arc::new).collect()
}

/// Completes the field `endpoints` of a new record: a key that is limited to endpoints shares it with these endpoints, or
/// with those of them that the request names.
///
/// # Errors
///
/// 401 for a key that is limited to endpoints if the request names another endpoint or none, or if the key's endpoints
/// are deleted.
pub(super) fn own_endpoints(
    state: &HttpState,
    key: &TrackedKey,
    members: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    if key.manages_all() {
        return Ok(());
    }
    let own: Vec<EndpointId> = Rights::of(state, key).endpoints.iter().map(|endpoint| endpoint.id).collect();
    let is_own = |name: &Value| {
        let endpoint = name.as_str().and_then(|name| state.engine().endpoint(name));
        endpoint.is_some_and(|endpoint| own.contains(&endpoint.id()))
    };
    let fits = match members.get(ENDPOINTS) {
        None => !own.is_empty(),
        Some(Value::Array(names)) => !names.is_empty() && names.iter().all(is_own),
        Some(_) => false,
    };
    if !fits {
        return Err(ApiError::unauthorized());
    }
    members.entry(ENDPOINTS).or_insert_with(|| json!(own));
    Ok(())
}

/// Returns whether a key has a permission for an endpoint, as a function of the endpoint.
pub(super) fn permitted_endpoint(
    state: &HttpState,
    key: &TrackedKey,
    permission: Permission,
) -> impl Fn(&EndpointId) -> bool {
    let now = auth::now_for(key, state);
    move |endpoint| key.permits(permission, Some(endpoint), now)
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
    /// The named code, if the key has sent it.
    sent: Option<CodeHash>,
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
        Self { engine, endpoints, templates, sent: None }
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

    /// Whether the key may name every text in a value, or every secret in an environment.
    fn permit(&self, resource: Resource, value: &Value) -> bool {
        let texts: Vec<&str> = match value {
            Value::Object(env) => env.values().filter_map(|value| value["secret"].as_str()).collect(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            // Some clients send an empty text for no resource.
            value => value.as_str().filter(|text| !text.is_empty()).into_iter().collect(),
        };
        match resource {
            Resource::Template => texts.iter().all(|id| self.template(id)),
            Resource::NetworkVolume => texts.iter().all(|id| id.is_empty() || self.volume(id)),
            Resource::RegistryAuth => texts.iter().all(|id| self.registry_auth(id)),
            Resource::Code => texts.iter().all(|workdir| match CodeHash::in_workdir(workdir) {
                None => true,
                Some(code) => code.is_ok_and(|code| self.code(&code)),
            }),
            Resource::Secret => texts.iter().all(|name| name.parse().is_ok_and(|name| self.secret(&name))),
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

    fn secret(&self, name: &SecretName) -> bool {
        let used = |template: &Arc<Template>| template.secrets().any(|used| used == name);
        let shared = || {
            let secret = self.engine.catalog().secret(name);
            secret.is_some_and(|secret| self.is_shared(&secret.endpoints))
        };
        self.templates.iter().any(used) || shared()
    }

    /// Whether a version of one of the endpoints runs this code, or the key has sent it.
    fn code(&self, code: &CodeHash) -> bool {
        let has_it = |endpoint: &Arc<Endpoint>| self.engine.catalog().has_version_with(endpoint, code);
        self.sent.as_ref() == Some(code) || self.endpoints.iter().any(has_it)
    }

    fn is_shared(&self, with: &SharedWith) -> bool {
        self.endpoints.iter().any(|endpoint| with.covers(&endpoint.id))
    }
}
