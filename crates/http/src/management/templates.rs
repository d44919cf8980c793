//! `/v1/templates`: what workers run.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use longshore_model::{Template, TemplateId};
use serde_json::Value;

use super::access::{may_manage, may_read};
use super::fields::{Verb, read_members};
use super::records::{Birth, changed_template, new_template};
use super::template_fields::TEMPLATE_FIELDS;
use super::{Answer, PathId, read_body, to_the_end, views};
use crate::HttpState;
use crate::errors::Failure;

pub(super) async fn create(State(state): State<HttpState>, headers: HeaderMap, body: Body) -> Answer {
    let key = may_manage(&state, &headers)?;
    let members = read_members(TEMPLATE_FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    let birth = Birth { entropy: state.engine().entropy(), at: state.engine().now(), by: &key.id };
    let template = new_template(members, birth)?;
    let stored =
        to_the_end(&state, |state| async move { Ok(state.engine().create_template(template).await?) })
            .await?;
    tracing::info!(template = %stored.id, by = %key.id, "template created");
    Ok(views::template(&stored).into())
}

pub(super) async fn list(State(state): State<HttpState>, headers: HeaderMap) -> Answer {
    may_read(&state, &headers)?;
    let templates = state.engine().templates();
    Ok(templates.iter().map(|template| views::template(template)).collect::<Value>().into())
}

pub(super) async fn get(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> Answer {
    may_read(&state, &headers)?;
    let template = state.engine().template(&parse(&id)?).ok_or_else(no_such_template)?;
    Ok(views::template(&template).into())
}

pub(super) async fn update(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    let members = read_members(TEMPLATE_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    let present = state.engine().template(&id).ok_or_else(no_such_template)?;
    changed_template(&present, members.clone())?;
    let stored = to_the_end(&state, |state| async move {
        // Checked again on the record as it is then: another request may have come first.
        let mut refused = None;
        let change = |template: &mut Template| match changed_template(template, members) {
            Ok(changed) => *template = changed,
            Err(failure) => refused = Some(failure),
        };
        let stored = state.engine().update_template(&id, change).await?;
        refused.map_or(Ok(stored), Err)
    })
    .await?;
    tracing::info!(template = %stored.id, by = %key.id, "template changed");
    Ok(views::template(&stored).into())
}

pub(super) async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    let key = may_manage(&state, &headers)?;
    let id = parse(&id)?;
    state.engine().template(&id).ok_or_else(no_such_template)?;
    to_the_end(&state, |state| async move { Ok(state.engine().delete_template(&id).await?) }).await?;
    tracing::info!(template = %id, by = %key.id, "template deleted");
    Ok(StatusCode::NO_CONTENT)
}

fn parse(id: &str) -> Result<TemplateId, Failure> {
    id.parse().map_err(|_| no_such_template())
}

fn no_such_template() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "template_not_found", "no template has this id")
}
