//! The mutations.

use serde_json::{Map, Value, json};

use super::query_text::SelectedField;
use super::rest::{ManagementClient, segment};
use super::{FieldError, Resolved, command_line, queries};

pub(super) async fn resolve(rest: &ManagementClient, selected: &SelectedField) -> Resolved {
    match selected.name.as_str() {
        "saveEndpoint" => save_endpoint(rest, selected.input()?).await,
        "updateEndpointTemplate" => {
            let input = selected.input()?;
            let path = format!("/v1/endpoints/{}", segment(text(&input, "endpointId")?));
            let changed = rest.patch(&path, &json!({ "templateId": text(&input, "templateId")? })).await?;
            Ok(queries::endpoint(&changed, &Value::Null))
        }
        "deleteEndpoint" => {
            rest.delete(&format!("/v1/endpoints/{}", segment(text(&selected.arguments, "id")?))).await
        }
        "saveTemplate" => save_template(rest, selected.input()?).await,
        "deleteTemplate" => delete_template(rest, text(&selected.arguments, "templateName")?).await,
        "saveRegistryAuth" => rest.post("/v1/containerregistryauth", &Value::Object(selected.input()?)).await,
        "deleteRegistryAuth" => {
            let id = text(&selected.arguments, "registryAuthId")?;
            rest.delete(&format!("/v1/containerregistryauth/{}", segment(id))).await
        }
        "updateRegistryAuth" => Err(FieldError::new(
            "container registry auths cannot be changed; delete this one and save another in its place",
        )),
        "updateUserSettings" => {
            Err(FieldError::new("there are no user settings here, and no SSH keys in them"))
        }
        // All other mutations change pods.
        _ => Err(FieldError::new(
            "pods are the workers of endpoints here, which the server starts and stops; make an endpoint instead",
        )),
    }
}

async fn save_endpoint(rest: &ManagementClient, mut input: Map<String, Value>) -> Resolved {
    let id = input.remove("id");
    rename_list(&mut input, "gpuIds", "gpuTypeIds")?;
    rename_list(&mut input, "locations", "dataCenterIds")?;
    rename_list(&mut input, "allowedCudaVersions", "allowedCudaVersions")?;
    if let Some(types) = input.get("gpuTypeIds").and_then(Value::as_array)
        && types.iter().any(|name| name.as_str().is_some_and(|name| name.starts_with('-')))
    {
        return Err(FieldError::new(
            "`gpuIds` leaves a type out with `-`; list the types that are wanted instead",
        ));
    }
    drop_empty(&mut input, "networkVolumeId");
    drop_empty(&mut input, "minCudaVersion");
    if let Some(kind) = input.remove("flashBootType") {
        input.insert("flashboot".to_owned(), json!(kind == json!("FLASHBOOT")));
    }
    let saved = match id.as_ref().and_then(Value::as_str).filter(|id| !id.is_empty()) {
        Some(id) => rest.patch(&format!("/v1/endpoints/{}", segment(id)), &Value::Object(input)).await?,
        None => rest.post("/v1/endpoints", &Value::Object(input)).await?,
    };
    Ok(queries::endpoint(&saved, &Value::Null))
}

async fn save_template(rest: &ManagementClient, mut input: Map<String, Value>) -> Resolved {
    let id = input.remove("id");
    match input.remove("dockerArgs") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => input.extend(command_line::parse(&text)?),
        Some(_) => return Err(FieldError::new("`dockerArgs` must be a text")),
    }
    rename_list(&mut input, "ports", "ports")?;
    if let Some(pairs) = input.remove("env") {
        input.insert("env".to_owned(), env(&pairs)?);
    }
    drop_empty(&mut input, "containerRegistryAuthId");
    // Workers run no SSH server, so the field has no effect.
    input.remove("startSsh");
    let saved = match id.as_ref().and_then(Value::as_str).filter(|id| !id.is_empty()) {
        Some(id) => rest.patch(&format!("/v1/templates/{}", segment(id)), &Value::Object(input)).await?,
        None => rest.post("/v1/templates", &Value::Object(input)).await?,
    };
    Ok(queries::template(&saved))
}

async fn delete_template(rest: &ManagementClient, name: &str) -> Resolved {
    let templates = rest.get("/v1/templates").await?;
    let mut templates = templates.as_array().into_iter().flatten();
    let found = templates.find(|template| template["name"] == json!(name));
    let id = found.and_then(|template| template["id"].as_str());
    let id = id.ok_or_else(|| FieldError::new("no template has this name"))?;
    rest.delete(&format!("/v1/templates/{}", segment(id))).await
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str, FieldError> {
    let text = members.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| FieldError::new(format!("`{name}` is required, a text")))
}

/// Replaces a text with commas by a list under another name.
fn rename_list(members: &mut Map<String, Value>, from: &str, to: &str) -> Result<(), FieldError> {
    let list = match members.remove(from) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(text)) => {
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(|item| json!(item)).collect()
        }
        Some(list @ Value::Array(_)) => list,
        Some(_) => {
            return Err(FieldError::new(format!("`{from}` must be a text of names with commas between")));
        }
    };
    members.insert(to.to_owned(), list);
    Ok(())
}

/// Removes a member whose value is null or an empty text.
fn drop_empty(members: &mut Map<String, Value>, name: &str) {
    if members.get(name).is_some_and(|value| *value == json!("") || value.is_null()) {
        members.remove(name);
    }
}

fn env(pairs: &Value) -> Resolved {
    let pair = |pair: &Value| Some((pair["key"].as_str()?.to_owned(), pair["value"].clone()));
    let members: Option<Map<String, Value>> =
        pairs.as_array().and_then(|pairs| pairs.iter().map(pair).collect());
    // The error does not show the values, which are secrets.
    members
        .map(Value::Object)
        .ok_or_else(|| FieldError::new("`env` must be a list of objects with `key` and `value`"))
}
