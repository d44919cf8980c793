//! Records from checked members: the members of a request replace the members of the same names in the JSON form of the
//! record.

use longshore_model::{
    CodeHash, Endpoint, EndpointId, EndpointNo, EndpointType, EnvValue, Millis, PausedFrom, Provider,
    Template, TemplateId, is_reserved_slug,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::endpoint_fields::ENDPOINT_FIELDS;
use super::fields::{Field, defaults};
use super::template_fields::TEMPLATE_FIELDS;
use crate::wire::api_error::ApiError;

/// The text that responses have in place of a secret. A client may send the text back to keep the secret.
pub(crate) const MASK: &str = "***";

/// The values of a new record that the server chooses.
#[derive(Clone, Copy)]
pub(super) struct Creation<'a> {
    pub entropy: u128,
    pub at: Millis,
    pub by: &'a str,
}

/// The fixed values of the examples in the API's document.
pub(super) const EXAMPLE: Creation<'static> = Creation {
    entropy: 0x0190_163d_8694_739b_aea5_966c_26f8_ad90,
    at: Millis(1_795_264_027_123),
    by: "admin",
};

/// Makes a template from the checked members of a request.
pub(super) fn new_template(
    members: Map<String, Value>,
    creation: Creation<'_>,
) -> Result<Template, ApiError> {
    let mut record = defaults(TEMPLATE_FIELDS);
    record.insert("id".to_owned(), json!(TemplateId::mint(creation.entropy)));
    record.insert("createdAt".to_owned(), json!(creation.at));
    record.extend(members);
    let mut template: Template = from_members(record)?;
    restore_masked(&mut template, None)?;
    require(!template.name.trim().is_empty(), "`name` is required: a template needs one to be found by")?;
    Ok(template)
}

/// Makes an endpoint that uses `template`, which may be unstored.
pub(super) fn new_endpoint(
    mut members: Map<String, Value>,
    template: &Template,
    creation: Creation<'_>,
) -> Result<Endpoint, ApiError> {
    members.remove("template");
    let id = EndpointId::mint(creation.entropy);
    let mut record = defaults(ENDPOINT_FIELDS);
    record.insert("id".to_owned(), json!(id));
    record.insert("name".to_owned(), json!(id));
    record.insert("provider".to_owned(), json!(default_provider(template)));
    // The engine sets the number when it stores the endpoint.
    record.insert("no".to_owned(), json!(EndpointNo(0)));
    record.insert("version".to_owned(), json!(1));
    record.insert("createdAt".to_owned(), json!(creation.at));
    record.insert("userId".to_owned(), json!(creation.by));
    let is_balancing = members.get("type").is_some_and(|sent| sent == "LB");
    if is_balancing {
        let sent = members.remove("lb").filter(Value::is_object).unwrap_or_else(|| json!({}));
        members.insert("lb".to_owned(), sent);
    }
    record.extend(members);
    record.insert("templateId".to_owned(), json!(template.id));
    let endpoint: Endpoint = from_members(record)?;
    check_slug(endpoint.slug.as_deref(), None)?;
    check_endpoint(&endpoint, template)?;
    Ok(endpoint)
}

/// Makes a record with a name from the checked members of a request, which must have the `required` fields.
pub(super) fn new_record<R: DeserializeOwned>(
    fields: &[Field],
    required: &[&str],
    id: impl Serialize,
    members: Map<String, Value>,
    at: Millis,
) -> Result<R, ApiError> {
    require_sent(&members, required)?;
    require_name(&members)?;
    let mut record = defaults(fields);
    record.insert("id".to_owned(), json!(id));
    record.insert("createdAt".to_owned(), json!(at));
    record.extend(members);
    from_members(record)
}

/// Returns a record with a name after a change.
pub(super) fn changed_record<R: Serialize + DeserializeOwned>(
    record: &R,
    members: Map<String, Value>,
) -> Result<R, ApiError> {
    require_name(&members)?;
    overlaid(record, members)
}

/// Returns a template after a change.
pub(super) fn changed_template(
    template: &Template,
    members: Map<String, Value>,
) -> Result<Template, ApiError> {
    let mut changed = overlaid(template, members)?;
    restore_masked(&mut changed, Some(template))?;
    require(!changed.name.trim().is_empty(), "`name` must not be empty")?;
    Ok(changed)
}

/// Returns an endpoint after a change. Setting `workersMax` to 0 pauses the endpoint, which stores the numbers of
/// workers in `pausedFrom`.
pub(super) fn changed_endpoint(
    endpoint: &Endpoint,
    mut members: Map<String, Value>,
    template: &Template,
) -> Result<Endpoint, ApiError> {
    merge_lb(endpoint, &mut members);
    let mut changed: Endpoint = overlaid(endpoint, members)?;
    check_slug(changed.slug.as_deref(), endpoint.slug.as_deref())?;
    check_endpoint(&changed, template)?;
    let is_paused = |endpoint: &Endpoint| endpoint.workers_max == 0;
    changed.paused_from = match (is_paused(endpoint), is_paused(&changed)) {
        (false, true) => {
            Some(PausedFrom { workers_min: endpoint.workers_min, workers_max: endpoint.workers_max })
        }
        (true, true) => endpoint.paused_from,
        (_, false) => None,
    };
    Ok(changed)
}

/// Adds the present fields of `lb` that the request leaves out. `null` keeps all of them.
fn merge_lb(endpoint: &Endpoint, members: &mut Map<String, Value>) {
    let Some(present) = endpoint.balances() else { return };
    let Some(sent) = members.get_mut("lb") else { return };
    let mut merged = json!(present);
    if let (Some(merged), Value::Object(sent)) = (merged.as_object_mut(), &mut *sent) {
        merged.append(sent);
    }
    *sent = merged;
}

/// Refuses a reserved slug. An endpoint keeps a slug that was reserved after the endpoint got it.
fn check_slug(slug: Option<&str>, before: Option<&str>) -> Result<(), ApiError> {
    match slug.filter(|slug| Some(*slug) != before && is_reserved_slug(slug)) {
        None => Ok(()),
        Some(slug) => require(
            false,
            format!("`slug` is {slug:?}, which is reserved for the management API; choose another"),
        ),
    }
}

/// Checks the rules that concern several fields.
fn check_endpoint(endpoint: &Endpoint, template: &Template) -> Result<(), ApiError> {
    let (min, max) = (endpoint.workers_min, endpoint.workers_max);
    require(
        min <= max,
        format!("`workersMin` is {min} and `workersMax` is {max}; the first must not be larger"),
    )?;
    require(!endpoint.name.trim().is_empty(), "`name` must not be empty")?;
    check_type(endpoint)?;
    let name = &template.name;
    match endpoint.provider {
        longshore_model::Provider::Process => require(
            has_command(template),
            format!(
                "template `{name}` has no command line for `process` workers; give it `dockerEntrypoint` or \
                 `dockerStartCmd`, or choose another `provider`"
            ),
        ),
        longshore_model::Provider::Docker | longshore_model::Provider::Kubernetes => require(
            !template.image_name.is_empty(),
            format!("template `{name}` has no `imageName`, which container workers need"),
        ),
        longshore_model::Provider::External => Ok(()),
    }
}

/// Checks what the type of an endpoint requires.
fn check_type(endpoint: &Endpoint) -> Result<(), ApiError> {
    match endpoint.endpoint_type {
        EndpointType::Queue => require(
            endpoint.lb.is_none(),
            "`lb` is for load-balancing endpoints; create the endpoint with `type` \"LB\", or leave `lb` out",
        ),
        EndpointType::Lb => require(
            matches!(endpoint.provider, Provider::Process | Provider::Docker),
            "an endpoint of the type `LB` needs workers that this server starts: choose the `provider` \
             \"process\" or \"docker\", and give its template a command or an image",
        ),
    }
}

/// The provider of an endpoint that names none: without a command line there is no process to start, so its workers are
/// external.
fn default_provider(template: &Template) -> &'static str {
    if has_command(template) { "process" } else { "external" }
}

/// Whether workers have a command line. Deployed code has its own.
pub(super) fn has_command(template: &Template) -> bool {
    let runs_code =
        template.workdir.as_deref().is_some_and(|workdir| CodeHash::in_workdir(workdir).is_some());
    runs_code || !template.docker_entrypoint.is_empty() || !template.docker_start_cmd.is_empty()
}

/// Replaces every [`MASK`] in the environment by the value that is stored under the same name.
fn restore_masked(template: &mut Template, kept: Option<&Template>) -> Result<(), ApiError> {
    for (name, value) in &mut template.env {
        if matches!(value, EnvValue::Text(text) if text == MASK) {
            let kept = kept.and_then(|kept| kept.env.get(name));
            let kept = kept.ok_or_else(|| {
                ApiError::bad_request(
                    "bad_field",
                    format!("`env.{name}` is `{MASK}`, and no value is kept for it"),
                )
            })?;
            value.clone_from(kept);
        }
    }
    Ok(())
}

fn overlaid<R: Serialize + DeserializeOwned>(record: &R, members: Map<String, Value>) -> Result<R, ApiError> {
    let Ok(Value::Object(mut whole)) = serde_json::to_value(record) else {
        return Err(ApiError::internal());
    };
    whole.extend(members);
    from_members(whole)
}

/// Parses a record. The table of fields is stricter than the record, so this fails only if the table lacks a rule.
fn from_members<R: DeserializeOwned>(members: Map<String, Value>) -> Result<R, ApiError> {
    serde_json::from_value(Value::Object(members))
        .map_err(|error| ApiError::bad_request("bad_field", error.to_string()))
}

/// Refuses a request that lacks one of the fields.
fn require_sent(members: &Map<String, Value>, names: &[&str]) -> Result<(), ApiError> {
    match names.iter().find(|name| !members.contains_key(**name)) {
        None => Ok(()),
        Some(name) => require(false, format!("`{name}` is required")),
    }
}

/// Refuses a blank name. A name that is not sent stays as it is.
fn require_name(members: &Map<String, Value>) -> Result<(), ApiError> {
    let name = members.get("name").and_then(Value::as_str);
    require(name.is_none_or(|name| !name.trim().is_empty()), "`name` must not be blank")
}

fn require(holds: bool, otherwise: impl Into<std::borrow::Cow<'static, str>>) -> Result<(), ApiError> {
    if holds { Ok(()) } else { Err(ApiError::bad_request("bad_field", otherwise)) }
}

#[cfg(test)]
mod tests {
    use super::super::fields::{Access, Verb, read_members};
    use super::*;

    const CREATION: Creation<'static> = Creation { entropy: 7, at: Millis(5), by: "key-1" };

    fn members(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            other => panic!("not an object: {other}"),
        }
    }

    fn template(value: Value) -> Template {
        new_template(members(value), CREATION).unwrap()
    }

    fn wire_names(record: &impl Serialize) -> Vec<String> {
        let mut names: Vec<String> =
            members(serde_json::to_value(record).unwrap()).into_iter().map(|(k, _)| k).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_tables_and_the_records_know_the_same_names() {
        let hidden = ["no", "deleting"];
        let added =
            ["template", "workers", "health", "env", "isRunpod", "earned", "runtimeInMin", "instanceIds"];
        let template = template(json!({"name": "t"}));
        let endpoint = new_endpoint(Map::new(), &template, CREATION).unwrap();
        for (fields, record) in
            [(ENDPOINT_FIELDS, wire_names(&endpoint)), (TEMPLATE_FIELDS, wire_names(&template))]
        {
            for name in record.iter().filter(|name| !hidden.contains(&name.as_str())) {
                assert!(fields.iter().any(|field| field.name == name), "the table lacks `{name}`");
            }
            for field in fields.iter().filter(|field| !added.contains(&field.name)) {
                assert!(record.iter().any(|name| name == field.name), "the record lacks `{}`", field.name);
            }
        }
    }

    #[test]
    fn every_default_is_fit_for_its_field() {
        for fields in [ENDPOINT_FIELDS, TEMPLATE_FIELDS] {
            let known = fields.iter().filter(|field| field.default.is_some()).count();
            let body = serde_json::to_vec(&defaults(fields)).unwrap();
            let read = read_members(fields, &body, Verb::Create).unwrap();
            assert_eq!(read.len(), known, "a default is not JSON");
            assert!(fields.iter().all(|field| field.access == Access::Write || field.default.is_none()));
        }
    }

    #[test]
    fn a_new_endpoint_has_the_documented_defaults() {
        let endpoint = new_endpoint(Map::new(), &template(json!({"name": "t"})), CREATION).unwrap();
        assert_eq!((endpoint.workers_min, endpoint.workers_max, endpoint.idle_timeout_s), (0, 3, 5));
        assert_eq!(endpoint.start_patience_ms, 600_000);
        assert_eq!((endpoint.scaler_value, endpoint.gpu_count, endpoint.version), (4, 1, 1));
        assert_eq!((endpoint.execution_timeout_ms, endpoint.max_retries), (600_000, 2));
        assert_eq!((endpoint.result_retention_ms, endpoint.sync_result_retention_ms), (1_800_000, 60_000));
        assert_eq!((endpoint.name.as_str(), endpoint.user_id.as_str()), (endpoint.id.as_str(), "key-1"));
        assert!(endpoint.flashboot);
    }

    #[test]
    fn records_of_earlier_versions_are_read_and_changed() {
        let endpoint = new_endpoint(Map::new(), &template(json!({"name": "t"})), CREATION).unwrap();
        let mut stored = serde_json::to_value(&endpoint).unwrap();
        stored["startPatienceMs"] = json!(500);
        let read: Endpoint = serde_json::from_value(stored).unwrap();
        assert_eq!(read.start_patience_ms, 10_000, "what the management API takes at least");
        let mut stored = serde_json::to_value(template(json!({"name": "t", "env": {"A": "1"}}))).unwrap();
        stored["env"]["1A"] = json!("hush");
        let read: Template = serde_json::from_value(stored).unwrap();
        let changed = changed_template(&read, members(json!({"env": {"1A": MASK, "B": "2"}}))).unwrap();
        assert_eq!(serde_json::to_value(&changed.env).unwrap(), json!({"1A": "hush", "B": "2"}));
    }

    #[test]
    fn the_provider_follows_the_template_unless_it_is_named() {
        let image = template(json!({"name": "t", "imageName": "i"}));
        let command = template(json!({"name": "t", "dockerStartCmd": ["python", "handler.py"]}));
        let provider = |members_: Value, template: &Template| {
            new_endpoint(members(members_), template, CREATION).map(|endpoint| endpoint.provider)
        };
        assert_eq!(provider(json!({}), &image).unwrap(), longshore_model::Provider::External);
        assert_eq!(provider(json!({}), &command).unwrap(), longshore_model::Provider::Process);
        assert_eq!(
            provider(json!({"provider": "docker"}), &image).unwrap(),
            longshore_model::Provider::Docker
        );
        let failure = provider(json!({"provider": "process"}), &image).unwrap_err();
        assert!(format!("{failure:?}").contains("no command line"), "{failure:?}");
        provider(json!({"provider": "kubernetes"}), &command).unwrap_err();
    }

    #[test]
    fn only_sent_fields_change_and_null_unsets() {
        let template = template(json!({"name": "t"}));
        let born = members(json!({"slug": "one", "workersMax": 7, "maxQueueLength": 5}));
        let endpoint = new_endpoint(born, &template, CREATION).unwrap();
        let sent = members(json!({"slug": null, "idleTimeout": 9}));
        let changed = changed_endpoint(&endpoint, sent, &template).unwrap();
        let expected = Endpoint { slug: None, idle_timeout_s: 9, ..endpoint };
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_reserved_slug_is_kept_and_never_given() {
        let template = template(json!({"name": "t"}));
        for slug in ["serverless", "Serverless", "openapi.json", "v2"] {
            let failure = new_endpoint(members(json!({"slug": slug})), &template, CREATION).unwrap_err();
            assert!(format!("{failure:?}").contains("reserved for the management API"), "{failure:?}");
        }
        let endpoint = new_endpoint(members(json!({"slug": "mine"})), &template, CREATION).unwrap();
        changed_endpoint(&endpoint, members(json!({"slug": "catalog"})), &template).unwrap_err();
        let old = Endpoint { slug: Some("catalog".to_owned()), ..endpoint };
        changed_endpoint(&old, members(json!({"slug": "catalog", "name": "n"})), &template).unwrap();
        changed_endpoint(&old, members(json!({"slug": "CATALOG"})), &template).unwrap_err();
        changed_endpoint(&old, members(json!({"slug": null})), &template).unwrap();
    }

    #[test]
    fn workers_min_over_max_is_refused_at_birth_and_later() {
        let template = template(json!({"name": "t"}));
        new_endpoint(members(json!({"workersMin": 4})), &template, CREATION).unwrap_err();
        let endpoint = new_endpoint(members(json!({"workersMin": 3})), &template, CREATION).unwrap();
        changed_endpoint(&endpoint, members(json!({"workersMax": 2})), &template).unwrap_err();
        changed_endpoint(&endpoint, members(json!({"workersMax": 2, "workersMin": 1})), &template).unwrap();
    }

    #[test]
    fn a_mask_sent_back_keeps_the_secret() {
        let reference = json!({"secret": "HF_TOKEN"});
        let kept = template(json!({"name": "t", "env": {"TOKEN": "hush", "HF": reference, "OLD": "x"}}));
        let sent = members(json!({"env": {"TOKEN": MASK, "HF": MASK, "NEW": "y"}}));
        let changed = changed_template(&kept, sent).unwrap();
        let env = json!({"HF": reference, "NEW": "y", "TOKEN": "hush"});
        assert_eq!(serde_json::to_value(&changed.env).unwrap(), env);
        changed_template(&kept, members(json!({"env": {"UNKNOWN": MASK}}))).unwrap_err();
        new_template(members(json!({"name": "t", "env": {"A": MASK}})), CREATION).unwrap_err();
    }
}
