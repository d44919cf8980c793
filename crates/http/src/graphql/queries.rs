//! The queries.

use longshore_model::Gpu;
use serde_json::{Map, Value, json};

use super::query_text::SelectedField;
use super::rest::{ManagementClient, segment};
use super::{FieldError, Resolved, command_line};
use crate::gate::auth;
use crate::management::MASK;

pub(super) async fn resolve(rest: &ManagementClient, selected: &SelectedField) -> Resolved {
    match selected.name.as_str() {
        "endpoints" => endpoints(rest, &[selected]).await,
        "myself" => myself(rest, selected).await,
        "gpuTypes" => gpu_types(rest, selected),
        "pod" => {
            let input = selected.input()?;
            let id = input.get("podId").and_then(Value::as_str).unwrap_or_default();
            Ok(pod(&rest.get(&format!("/v1/pods/{}", segment(id))).await?))
        }
        other => Err(FieldError::new(format!("`{other}` is not a query"))),
    }
}

/// The key of the request and the resources. Only selected lists are requested.
async fn myself(rest: &ManagementClient, selected: &SelectedField) -> Resolved {
    let mut user = Map::new();
    user.insert("id".to_owned(), json!(rest.key.id));
    for field in &selected.fields {
        let list = match field.name.as_str() {
            "endpoints" => {
                // The query may select the field several times, under aliases and with other fields.
                let all: Vec<&SelectedField> =
                    selected.fields.iter().filter(|other| other.name == field.name).collect();
                endpoints(rest, &all).await?
            }
            "pods" => each(&rest.get("/v1/pods").await?, pod),
            "podTemplates" => each(&rest.get("/v1/templates").await?, template),
            "networkVolumes" => rest.get("/v1/networkvolumes").await?,
            "containerRegistryCreds" => rest.get("/v1/containerregistryauth").await?,
            _ => continue,
        };
        user.insert(field.name.clone(), list);
    }
    Ok(Value::Object(user))
}

async fn endpoints(rest: &ManagementClient, selected_fields: &[&SelectedField]) -> Resolved {
    let wants = |name: &str| {
        selected_fields.iter().flat_map(|selected| &selected.fields).any(|field| field.name == name)
    };
    let query = format!("includeWorkers={}&includeTemplate={}", wants("pods"), wants("template"));
    let volumes =
        if wants("networkVolume") { rest.get("/v1/networkvolumes").await? } else { Value::Array(Vec::new()) };
    let listed = rest.get(&format!("/v1/endpoints?{query}")).await?;
    Ok(each(&listed, |record| endpoint(record, &volumes)))
}

fn each(list: &Value, show: impl Fn(&Value) -> Value) -> Value {
    list.as_array().into_iter().flatten().map(show).collect()
}

/// Converts an endpoint of the management API to GraphQL. `volumes` are the volumes that it may use.
pub(super) fn endpoint(record: &Value, volumes: &Value) -> Value {
    let mut shown = record.as_object().cloned().unwrap_or_default();
    let volume_id = record["networkVolumeId"].clone();
    let volume = volumes.as_array().into_iter().flatten().find(|volume| volume["id"] == volume_id);
    let flashboot = if record["flashboot"] == json!(true) { "FLASHBOOT" } else { "OFF" };
    for (name, value) in [
        ("gpuIds", joined(&record["gpuTypeIds"])),
        ("locations", joined(&record["dataCenterIds"])),
        ("allowedCudaVersions", joined(&record["allowedCudaVersions"])),
        ("flashBootType", json!(flashboot)),
        ("workersStandby", record["workersMin"].clone()),
        ("type", json!("QB")),
        ("env", pairs(&record["env"])),
        ("networkVolume", volume.cloned().unwrap_or_default()),
        ("template", template(&record["template"])),
        ("pods", each(&record["workers"], pod)),
    ] {
        shown.insert(name.to_owned(), value);
    }
    Value::Object(shown)
}

/// Converts a template of the management API to GraphQL.
pub(super) fn template(record: &Value) -> Value {
    let Some(members) = record.as_object() else { return Value::Null };
    let mut shown = members.clone();
    shown.insert("dockerArgs".to_owned(), docker_args(record));
    shown.insert("ports".to_owned(), joined(&record["ports"]));
    shown.insert("env".to_owned(), pairs(&record["env"]));
    shown.insert("startSsh".to_owned(), json!(false));
    Value::Object(shown)
}

/// Converts a worker of the management API to GraphQL.
fn pod(record: &Value) -> Value {
    let mut shown = record.as_object().cloned().unwrap_or_default();
    let gpu = &record["gpu"];
    let names = record["env"].as_object().into_iter().flatten();
    let env: Value =
        names.map(|(name, value)| json!(format!("{name}={}", value.as_str().unwrap_or(MASK)))).collect();
    for (name, value) in [
        ("dockerArgs", docker_args(record)),
        ("env", env),
        ("gpuCount", if gpu.is_null() { json!(0) } else { gpu["count"].clone() }),
        ("imageName", record["image"].clone()),
        ("lastStatusChange", record["reason"].clone()),
        ("machine", json!({ "gpuDisplayName": gpu["displayName"] })),
        ("ports", joined(&record["ports"])),
        ("podType", json!("RESERVED")),
    ] {
        shown.insert(name.to_owned(), value);
    }
    Value::Object(shown)
}

fn docker_args(record: &Value) -> Value {
    let parts = ["dockerEntrypoint", "dockerStartCmd"].into_iter();
    let parts = parts.flat_map(|name| record[name].as_array().into_iter().flatten());
    json!(command_line::write(&parts.filter_map(Value::as_str).collect::<Vec<_>>()))
}

fn joined(list: &Value) -> Value {
    let items = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    json!(items.collect::<Vec<_>>().join(","))
}

/// Lists the variables of an environment. Clients expect a text as each value, so the name of a secret is a field beside
/// it.
fn pairs(members: &Value) -> Value {
    let pair = |(key, value): (&String, &Value)| match value {
        Value::Object(reference) => json!({ "key": key, "value": MASK, "secret": reference["secret"] }),
        value => json!({ "key": key, "value": value }),
    };
    members.as_object().into_iter().flatten().map(pair).collect()
}

/// The types of the GPUs that workers can get, with their prices. Needs a key that may read the whole catalog: no
/// request to the management API checks it.
fn gpu_types(rest: &ManagementClient, selected: &SelectedField) -> Resolved {
    if !auth::reads_catalog(&rest.state, &rest.key) {
        return Err(FieldError::unauthorized());
    }
    let wanted = selected.arguments.get("input").and_then(|input| input["id"].as_str());
    let gpus: Vec<Gpu> = rest.state.engine().gpus().gpus.into_iter().map(|pooled| pooled.gpu).collect();
    let mut types: Vec<&Gpu> = Vec::new();
    for gpu in gpus.iter().filter(|gpu| wanted.is_none_or(|id| id == gpu.type_id)) {
        if types.iter().all(|known| known.type_id != gpu.type_id) {
            types.push(gpu);
        }
    }
    let asked = selected.fields.iter().find(|field| field.name == "lowestPrice");
    let asked = asked.and_then(|field| field.arguments.get("input")?["gpuCount"].as_u64()).unwrap_or(1);
    let show = |gpu: &&Gpu| {
        let price = |count| rest.state.prices().per_hour(Some(&gpu.type_id), count);
        json!({
            "id": gpu.type_id,
            "displayName": gpu.type_id,
            "memoryInGb": gpu.memory_mib.div_ceil(1_024),
            "manufacturer": gpu.type_id.split(' ').next(),
            "maxGpuCount": gpus.iter().filter(|other| other.type_id == gpu.type_id).count(),
            "secureCloud": true,
            "communityCloud": false,
            "securePrice": price(1),
            "lowestPrice": { "uninterruptablePrice": price(usize::try_from(asked).unwrap_or(1)) },
        })
    };
    Ok(types.iter().map(show).collect())
}
