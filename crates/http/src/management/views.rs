//! Records as clients read them: without internal numbers, secrets and unset fields, and with times in RFC 3339.

use longshore_model::{Endpoint, EnvValue, Millis, NetworkVolume, RegistryAuth, Template};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::from_fields::MASK;
use super::json_members::EndpointView;
use crate::services::files::VolumeUse;
use crate::wire::rfc3339::rfc3339;

/// A template, with the texts of the environment masked.
pub(super) fn template(template: &Template) -> Value {
    let mut view = members(template);
    view.insert("env".to_owned(), masked_env(template));
    view.insert("createdAt".to_owned(), time(template.created_at));
    // The official clients expect these fields.
    view.insert("isRunpod".to_owned(), json!(false));
    view.insert("earned".to_owned(), json!(0));
    view.insert("runtimeInMin".to_owned(), json!(0));
    Value::Object(view)
}

/// Credentials for a registry, without user name and password.
pub(super) fn registry_auth(auth: &RegistryAuth) -> Value {
    json!({
        "id": auth.id, "name": auth.name, "endpoints": auth.endpoints, "createdAt": rfc3339(auth.created_at),
    })
}

/// A network volume as clients read it, with how much of the disk it takes.
pub(super) fn volume(volume: &NetworkVolume, measured: Option<VolumeUse>) -> Value {
    let mut view = members(volume);
    view.insert("diskBytes".to_owned(), json!(measured.map(|it| it.bytes)));
    view.insert("diskBytesAt".to_owned(), json!(measured.map(|it| rfc3339(it.measured_at))));
    view.insert("createdAt".to_owned(), time(volume.created_at));
    Value::Object(view)
}

/// The resources that a response shows in an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extras<'a> {
    pub template: bool,
    pub workers: Option<&'a [Value]>,
}

/// An endpoint whose template is `used`.
pub(super) fn endpoint(endpoint: &Endpoint, used: Option<&Template>, extras: Extras<'_>) -> EndpointView {
    let mut view = members(endpoint);
    view.remove("no");
    view.remove("deleting");
    view.insert("createdAt".to_owned(), time(endpoint.created_at));
    view.insert("instanceIds".to_owned(), json!([]));
    view.insert("env".to_owned(), used.map_or_else(|| json!({}), masked_env));
    if let (true, Some(used)) = (extras.template, used) {
        view.insert("template".to_owned(), template(used));
    }
    if let Some(workers) = extras.workers {
        view.insert("workers".to_owned(), json!(workers));
    }
    EndpointView(view)
}

/// The environment of a template with every text masked. The names of secrets are shown.
pub(super) fn masked_env(template: &Template) -> Value {
    let shown = |value: &EnvValue| match value {
        EnvValue::Text(_) => json!(MASK),
        EnvValue::Secret(reference) => json!(reference),
    };
    template.env.iter().map(|(name, value)| (name.clone(), shown(value))).collect::<Map<_, _>>().into()
}

/// A time as RFC 3339 text.
pub(super) fn time(at: Millis) -> Value {
    Value::String(rfc3339(at))
}

fn members(record: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(record) {
        // The official clients expect unset fields to be absent, not null.
        Ok(Value::Object(members)) => members.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        // Unreachable: records are structs with named fields.
        _ => Map::new(),
    }
}
