//! `/v1/templates`: the image, command line and environment of workers.

use std::sync::Arc;

use longshore_engine::{EndpointHandle, TrackedKey};
use longshore_model::{Permission, Template, TemplateId};
use serde_json::{Map, Value, json};

use super::code::check_code;
use super::fields::Field;
use super::from_fields::{Creation, EXAMPLE, changed_template, new_template};
use super::operations::{operations, schemas};
use super::references::{may_change_template, templates_to_change};
use super::secrets::check_secrets;
use super::shared_resource::{SharedResource, create, delete, get, list, update};
use super::stored_record::StoredRecord as _;
use super::template_fields::TEMPLATE_FIELDS;
use super::views;
use crate::HttpState;
use crate::gate::auth;
use crate::openapi::Group;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::wire::api_error::ApiError;

/// Parameters that the official clients send and that have no effect.
const INCLUDE: &[Parameter] = &[
    query(
        "includeEndpointBoundTemplates",
        ParameterKind::Flag,
        "accepted for compatibility: these templates are always included",
    ),
    query(
        "includePublicTemplates",
        ParameterKind::Flag,
        "accepted for compatibility: there are no public templates",
    ),
    query(
        "includeRunpodTemplates",
        ParameterKind::Flag,
        "accepted for compatibility: there are no such templates",
    ),
];

/// The operations on templates.
pub(super) fn group() -> Group {
    let [list, create, get, update, update_by_post, delete] = operations!(
        "Template",
        "Templates",
        "/v1/templates",
        "/v1/templates/{template}",
        [list::<Template>, create::<Template>, get::<Template>, update::<Template>, delete::<Template>],
    );
    let operations = vec![
        list.summary("every template").with(INCLUDE),
        create.summary("creates a template"),
        get.summary("one template").with(INCLUDE),
        update
            .about("Endpoints that use the template get a new `version` if workers must be replaced for it."),
        update_by_post,
        delete.summary("deletes a template that no endpoint uses"),
    ];
    let schemas = schemas!(
        "Template",
        TEMPLATE_FIELDS,
        Template::REQUIRED,
        {
            read: example().map_or(Value::Null, |template| views::template(&template)),
            create: example_input().into(),
            update: json!({ "readme": "Says hello." }),
        },
    );
    Group {
        name: "Templates",
        about: "The image, command line and environment of workers.",
        operations,
        schemas,
    }
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

/// The template in the examples of the API's document.
pub(super) fn example() -> Option<Template> {
    new_template(example_input(), EXAMPLE).ok()
}

impl SharedResource for Template {
    const NAME: &'static str = "template";
    const NOT_FOUND: (&'static str, &'static str) = ("template_not_found", "no template has this id");
    const FIELDS: &'static [Field] = TEMPLATE_FIELDS;
    const REQUIRED: &'static [&'static str] = &["name"];

    fn view(&self, _state: &HttpState, _key: &TrackedKey) -> Value {
        views::template(self)
    }

    fn new(members: Map<String, Value>, creation: Creation<'_>) -> Result<Self, ApiError> {
        new_template(members, creation)
    }

    fn changed(&self, members: Map<String, Value>) -> Result<Self, ApiError> {
        changed_template(self, members)
    }

    fn may_change(state: &HttpState, key: &TrackedKey, id: Option<TemplateId>) -> Result<(), ApiError> {
        may_change_template(state, key, id)
    }

    fn may_read(state: &HttpState, key: &TrackedKey, id: Option<TemplateId>) -> Result<(), ApiError> {
        if auth::reads_catalog(state, key) { Ok(()) } else { may_change_template(state, key, id) }
    }

    fn list_for(state: &HttpState, key: &TrackedKey) -> Result<Vec<Arc<Self>>, ApiError> {
        if auth::reads_catalog(state, key) {
            Ok(Self::list(state.engine()))
        } else if key.has_scope_for(Permission::WriteCatalog) {
            Ok(templates_to_change(state, key))
        } else {
            Err(ApiError::unauthorized())
        }
    }

    async fn check(&self, state: &HttpState, before: Option<&Self>) -> Result<(), ApiError> {
        check_secrets(state, self, before)?;
        check_code(state, self, before).await
    }

    fn users(&self, state: &HttpState) -> Vec<EndpointHandle> {
        state.engine().catalog().endpoints_using(&self.id)
    }
}
