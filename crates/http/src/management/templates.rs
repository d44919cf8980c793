//! `/v1/templates`: what workers run.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use longshore_engine::Engine;
use longshore_model::{SharedWith, Template, TemplateId};
use serde_json::{Map, Value, json};

use super::access::{may_manage, may_read};
use super::code::check_code;
use super::etag::{ETag, IfMatch};
use super::fields::{Verb, read_members};
use super::from_fields::{Creation, EXAMPLE, changed_template, new_template};
use super::references::{
    hide_others, may_manage_template, may_name, resolve_endpoints, still_manages_template,
};
use super::template_fields::TEMPLATE_FIELDS;
use super::{PathId, list_all, read_body, schemas, to_the_end, views};
use crate::HttpState;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::with_example;
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;

/// What clients of such an API ask for; all of it is shown anyway.
const INCLUDE: &[Parameter] = &[
    query(
        "includeEndpointBoundTemplates",
        ParameterKind::Flag,
        "accepted for compatibility: they are always shown",
    ),
    query(
        "includePublicTemplates",
        ParameterKind::Flag,
        "accepted for compatibility: there are none of others",
    ),
    query("includeRunpodTemplates", ParameterKind::Flag, "accepted for compatibility: there are none"),
];

/// The operations on templates.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("ListTemplates", "/v1/templates", list)
            .summary("every template")
            .lists("Template")
            .with(INCLUDE),
        Operation::post("CreateTemplate", "/v1/templates", create)
            .summary("makes a template")
            .takes("TemplateCreateInput")
            .gives("Template")
            .tagged(),
        Operation::get("GetTemplate", "/v1/templates/{template}", get)
            .summary("one template")
            .gives("Template")
            .with(INCLUDE)
            .tagged(),
        Operation::patch("UpdateTemplate", "/v1/templates/{template}", update)
            .summary("changes what is sent")
            .about("Endpoints that use the template get a new `version` if workers must be replaced for it.")
            .takes("TemplateUpdateInput")
            .gives("Template")
            .tagged(),
        Operation::post("UpdateTemplateByPost", "/v1/templates/{template}/update", update)
            .summary("the same as PATCH")
            .takes("TemplateUpdateInput")
            .gives("Template")
            .tagged(),
        Operation::delete("DeleteTemplate", "/v1/templates/{template}", delete)
            .summary("deletes a template that no endpoint uses")
            .tagged(),
    ];
    let example = example().map_or(Value::Null, |template| views::template(&template));
    let schemas = vec![
        ("Template", with_example(schemas::read(TEMPLATE_FIELDS), example)),
        (
            "TemplateCreateInput",
            with_example(schemas::sent(TEMPLATE_FIELDS, Verb::Create, &["name"]), example_input().into()),
        ),
        (
            "TemplateUpdateInput",
            with_example(
                schemas::sent(TEMPLATE_FIELDS, Verb::Update, &[]),
                json!({ "readme": "Says hello." }),
            ),
        ),
    ];
    Group { name: "Templates", about: "What workers run.", operations, schemas }
}

fn example_input() -> Map<String, Value> {
    let members = [
        ("name", json!("hello")),
        ("imageName", json!("hello")),
        ("dockerStartCmd", json!(["python", "-u", "handler.py"])),
        ("workdir", json!("/srv/hello")),
        ("env", json!({ "GREETING": "Hello" })),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The template of the document's examples.
pub(super) fn example() -> Option<Template> {
    new_template(example_input(), EXAMPLE).ok()
}

async fn create(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let mut members = read_members(TEMPLATE_FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    resolve_endpoints(state.engine(), &mut members, &SharedWith::default())?;
    let creation = Creation { entropy: state.engine().entropy(), at: state.engine().now(), by: &key.id };
    let template = new_template(members, creation)?;
    check_code(&state, &template, None).await?;
    let stored =
        to_the_end(&state, |state| async move { Ok(state.engine().create_template(template).await?) })
            .await?;
    tracing::info!(template = %stored.id, by = %key.id, "template created");
    Ok(ETag::of(state.engine(), &*stored).answer(views::template(&stored)))
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = |template: &Arc<Template>| (template.created_at, template.id.to_string());
    list_all((&state, &uri, &headers), Engine::templates, key, |template| views::template(template))
}

async fn get(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    let template = state.engine().template(&parse(&id)?).ok_or_else(no_such_template)?;
    Ok(ETag::of(state.engine(), &*template).answer_look(&headers, views::template(&template)))
}

async fn update(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage_template(&state, &headers, &id)?;
    let id = parse(&id)?;
    let mut members = read_members(TEMPLATE_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    may_name(&state, &key, TEMPLATE_FIELDS, &members)?;
    let present = state.engine().template(&id).ok_or_else(no_such_template)?;
    resolve_endpoints(state.engine(), &mut members, &present.endpoints)?;
    let changed = changed_template(&present, members.clone())?;
    check_code(&state, &changed, Some(&present)).await?;
    let expected = IfMatch::of(&headers);
    let by = Arc::clone(&key);
    let stored = to_the_end(&state, |state| async move {
        // Checked again on the record as it is then: another request may have come first.
        let engine = state.engine();
        let change = |template: &mut Template| {
            still_manages_template(&state, &by, Some(&id))?;
            may_name(&state, &by, TEMPLATE_FIELDS, &members)?;
            expected.check(engine, template)?;
            *template = changed_template(template, members)?;
            Ok(())
        };
        engine.update_template(&id, change).await
    })
    .await?;
    tracing::info!(template = %stored.id, by = %key.id, "template changed");
    let mut view = views::template(&stored);
    hide_others(&state, &key, &mut view);
    Ok(ETag::of(state.engine(), &*stored).answer(view))
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    state.engine().template(&id).ok_or_else(no_such_template)?;
    let expected = IfMatch::of(&headers);
    to_the_end(&state, |state| async move {
        let engine = state.engine();
        Ok(engine.delete_template_if(&id, |template| expected.is_met(engine, template)).await?)
    })
    .await?;
    tracing::info!(template = %id, by = %key.id, "template deleted");
    Ok(StatusCode::NO_CONTENT)
}

fn parse(id: &str) -> Result<TemplateId, ApiError> {
    id.parse().map_err(|_| no_such_template())
}

fn no_such_template() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "template_not_found", "no template has this id")
}
