//! Which fields of an endpoint and its template a change concerns, without secrets.

use longshore_model::{SecretName, Template};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Records;
use super::record::FieldChange;

/// The text in place of a secret or a long value.
const CHANGED: &str = "changed";
/// The longest value that is shown, as JSON, in bytes.
const VALUE_BYTES_MAX: usize = 256;
/// The most variables that an entry lists, and the most bytes of their names; more are shown as `env` alone.
const VARIABLES_MAX: usize = 50;
const NAMES_BYTES_MAX: usize = 4_096;
/// Members of an endpoint's record that no client sets, and `templateId`, which comes first.
const APART: [&str; 9] =
    ["id", "no", "version", "createdAt", "userId", "deleting", "pausedFrom", "deployedEnv", "templateId"];
/// The members of a template's record that workers are started with, except `env`.
const PROGRAM: [&str; 5] =
    ["imageName", "dockerEntrypoint", "dockerStartCmd", "workdir", "containerRegistryAuthId"];

/// The changed fields: those of the endpoint, then those of its template, then the variables.
pub(super) fn changes(was: Records<'_>, is: Records<'_>) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let (before, after) = (members(was.endpoint), members(is.endpoint));
    changes.extend(compared("templateId", &before, &after));
    let own = after.keys().filter(|name| !APART.contains(&name.as_str()));
    changes.extend(own.filter_map(|name| compared(name, &before, &after)));
    let (before, after) = (members(was.template), members(is.template));
    changes.extend(PROGRAM.iter().filter_map(|name| compared(name, &before, &after)));
    changes.extend(variables(was.template, is.template));
    changes
}

/// The variables whose value is that of a secret.
pub(super) fn variables_with(template: &Template, secret: &SecretName) -> Vec<FieldChange> {
    let named = template.env.iter().filter(|(_, value)| value.secret_name() == Some(secret));
    bounded(named.map(|(name, _)| variable(name, true, true)).collect())
}

fn compared(name: &str, before: &Map<String, Value>, after: &Map<String, Value>) -> Option<FieldChange> {
    let of = |members: &Map<String, Value>| members.get(name).cloned().unwrap_or_default();
    let (from, to) = (of(before), of(after));
    (from != to).then(|| FieldChange { name: name.to_owned(), from: shown(from), to: shown(to) })
}

/// The changed variables, each as `env.NAME`.
fn variables(before: &Template, after: &Template) -> Vec<FieldChange> {
    let names = before.env.keys().chain(after.env.keys().filter(|name| !before.env.contains_key(*name)));
    let changed = names.filter(|name| before.env.get(*name) != after.env.get(*name));
    let change = |name: &String| variable(name, before.env.contains_key(name), after.env.contains_key(name));
    bounded(changed.map(change).collect())
}

fn variable(name: &str, was_set: bool, is_set: bool) -> FieldChange {
    let mask = |is_set: bool| if is_set { json!(CHANGED) } else { Value::Null };
    FieldChange { name: format!("env.{name}"), from: mask(was_set), to: mask(is_set) }
}

fn bounded(variables: Vec<FieldChange>) -> Vec<FieldChange> {
    let bytes: usize = variables.iter().map(|variable| variable.name.len()).sum();
    if variables.len() <= VARIABLES_MAX && bytes <= NAMES_BYTES_MAX {
        return variables;
    }
    vec![FieldChange { name: "env".to_owned(), from: json!(CHANGED), to: json!(CHANGED) }]
}

fn shown(value: Value) -> Value {
    if value.to_string().len() > VALUE_BYTES_MAX { json!(CHANGED) } else { value }
}

fn members(record: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(record) {
        Ok(Value::Object(members)) => members,
        // Unreachable: records are structs with named fields.
        _ => Map::new(),
    }
}
