//! `POST /v1/endpoints/{endpoint}/deploy`: code, command line, `env` and settings of an endpoint, in one change.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use longshore_engine::NewVersion;
use longshore_model::{Endpoint, Provider, Template};
use serde_json::{Map, Value, json};

use super::access::may_manage_endpoint;
use super::code::check_code;
use super::endpoint_fields::ENDPOINT_FIELDS;
use super::endpoints::{check_provider, check_webhook};
use super::etag::{ETag, IfMatch};
use super::fields::{Field, FieldKind, Verb, read_members};
use super::from_fields::{MASK, changed_endpoint, changed_template, has_command};
use super::references::{SentCode, may_name};
use super::schemas;
use super::secrets::check_secrets;
use super::template_fields::TEMPLATE_FIELDS;
use super::{PathId, read_body, to_the_end};
use crate::HttpState;
use crate::audit::note_fields;
use crate::openapi::schema::{count, object, text, with_example};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;

const PATH: &str = "/v1/endpoints/{endpoint}/deploy";

/// The fields of a deploy.
pub(super) const DEPLOY_FIELDS: &[Field] = &[
    Field::new(
        "template",
        FieldKind::Object(TEMPLATE_FIELDS),
        "what workers are started with; `env` keeps the variables that no deploy has set",
    ),
    Field::new("endpoint", FieldKind::Object(ENDPOINT_FIELDS), "the endpoint's own fields"),
];
/// Fields that a deploy does not change.
const NOT_DEPLOYED: [(&str, &str); 3] =
    [("template", "endpoints"), ("template", "name"), ("endpoint", "templateId")];

/// The operation `deploy`.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::post("DeployEndpoint", PATH, deploy)
            .summary("changes the program and the fields of an endpoint in one request")
            .about(
                "Only fields that are sent change. In `env`, the variables that the last deploy set and this one does not send \
                 are removed, and all others stay. A template that other endpoints use is not changed: the endpoint gets one \
                 of its own. A deploy of what the endpoint has already changes nothing.",
            )
            .takes("DeployInput")
            .gives("Deployed")
            .tagged(),
    ];
    let deployed = object(
        &[("id", text()), ("version", count()), ("changed", json!({ "type": "boolean" }))],
        &["id", "version", "changed"],
    );
    let sent = json!({
        "template": { "dockerStartCmd": ["python", "-u", "handler.py"], "env": { "GREETING": "Hello" } },
        "endpoint": { "workersMax": 2 },
    });
    let schemas = vec![
        ("DeployInput", with_example(schemas::sent(DEPLOY_FIELDS, Verb::Update, &[]), sent)),
        ("Deployed", deployed),
    ];
    Group { name: "Deploys", about: "New versions of endpoints.", operations, schemas }
}

async fn deploy(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let members = read_members(DEPLOY_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    note_fields(names(&members).iter());
    refuse_others(&members)?;
    let sent = SentCode::of(&state, &key, &members).await?;
    may_name(&state, &key, DEPLOY_FIELDS, &members, &sent)?;
    let present = endpoint.record();
    let used = state.engine().catalog().template(&present.template_id).ok_or_else(ApiError::internal)?;
    check_webhook(&state, &object_in(&members, "endpoint"))?;
    let (_, program) = deployed(&state, &members, &present, &used)?;
    check_code(&state, &program, Some(&used)).await?;
    check_secrets(&state, &program, Some(&used))?;
    let expected = IfMatch::of(&headers);
    let by = Arc::clone(&key.key);
    let stored = to_the_end(&state, |state| async move {
        let change = |endpoint: &mut Endpoint, template: &mut Template| {
            // Checked again on the stored records: another request may have changed them meanwhile.
            may_name(&state, &by, DEPLOY_FIELDS, &members, &sent)?;
            expected.check(state.engine(), endpoint)?;
            (*endpoint, *template) = deployed(&state, &members, endpoint, template)?;
            Ok(())
        };
        state.engine().deploy(present.id.as_str(), &by.id, NewVersion::IfWorkersChange, change).await
    })
    .await?;
    let record = &stored.endpoint;
    // The next job shows what was deployed.
    endpoint.workers().outdated_drained(record.version).await;
    tracing::info!(
        endpoint = %record.id, version = record.version, changed = stored.is_changed, by = %key.id, "endpoint deployed"
    );
    let view = json!({ "id": record.id, "version": record.version, "changed": stored.is_changed });
    Ok(ETag::of(state.engine(), &**record).answer(view))
}

/// The names of the sent fields, for the audit log: `template.env`.
fn names(members: &Map<String, Value>) -> Vec<String> {
    let inner = |(name, value): (&String, &Value)| {
        let inner = value.as_object().into_iter().flat_map(Map::keys);
        inner.map(|inner| format!("{name}.{inner}")).collect::<Vec<_>>()
    };
    members.iter().flat_map(inner).collect()
}

fn refuse_others(members: &Map<String, Value>) -> Result<(), ApiError> {
    match NOT_DEPLOYED
        .iter()
        .find(|(object, field)| members.get(*object).is_some_and(|it| !it[*field].is_null()))
    {
        None => Ok(()),
        Some((object, field)) => Err(ApiError::bad_request(
            "bad_field",
            format!("`{object}.{field}` cannot change with a deploy; leave it out"),
        )),
    }
}

/// The records after a deploy of the checked members.
fn deployed(
    state: &HttpState,
    members: &Map<String, Value>,
    endpoint: &Endpoint,
    template: &Template,
) -> Result<(Endpoint, Template), ApiError> {
    let mut program = object_in(members, "template");
    let deployed_env = program.get_mut("env").and_then(Value::as_object_mut);
    let deployed_env = deployed_env.map(|sent| merge_env(sent, endpoint, template));
    let template_after = changed_template(template, program)?;
    let mut own = object_in(members, "endpoint");
    let can_start = state.engine().providers().contains(&Provider::Process);
    let gets_command = !has_command(template) && has_command(&template_after);
    if endpoint.provider == Provider::External && gets_command && can_start {
        // Its workers were external because there was nothing to start.
        own.entry("provider").or_insert_with(|| json!(Provider::Process.as_str()));
    }
    check_provider(state.engine(), &own, Some(endpoint.provider))?;
    let mut endpoint_after = changed_endpoint(endpoint, own, &template_after)?;
    if let Some(names) = deployed_env {
        endpoint_after.deployed_env = names;
    }
    Ok((endpoint_after, template_after))
}

/// Adds the present variables that no deploy has set to the `sent` ones. Returns the names that this deploy sets,
/// ascending.
fn merge_env(sent: &mut Map<String, Value>, endpoint: &Endpoint, template: &Template) -> Vec<String> {
    let was_deployed = |name: &String| endpoint.deployed_env.contains(name);
    // A mask sent for a variable leaves it as it is.
    let sets = |(name, value): &(&String, &Value)| *value != MASK || was_deployed(name);
    let mut names: Vec<String> = sent.iter().filter(sets).map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    for name in template.env.keys().filter(|name| !was_deployed(name)) {
        sent.entry(name.clone()).or_insert_with(|| json!(MASK));
    }
    names
}

fn object_in(members: &Map<String, Value>, name: &str) -> Map<String, Value> {
    members.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}
