//! `/v1/endpoints`: queues and the settings of their workers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use futures_util::stream::iter;
use futures_util::{StreamExt as _, TryStreamExt as _};
use longshore_engine::{EndpointHandle, Engine};
use longshore_envelope::{EnvelopeError, web_address};
use longshore_model::{Endpoint, Permission, Provider, SharedWith, Template, TemplateId};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::access::{may_manage, may_manage_endpoint, may_read_endpoint, may_see_machines};
use super::base_url::base_url;
use super::code::check_code;
use super::endpoint_fields::ENDPOINT_FIELDS;
use super::etag::{ETag, IfMatch};
use super::fields::{Verb, read_members};
use super::from_fields::{Creation, EXAMPLE, changed_endpoint, new_endpoint, new_template};
use super::json_members::EndpointView;
use super::operations::{operations, schemas};
use super::references::{SentCode, hide_others, may_name, resolve_endpoints};
use super::secrets::check_secrets;
use super::views::Extras;
use super::{JsonResult, PathId, pods, read_body, templates, to_the_end, views};
use crate::HttpState;
use crate::gate::auth;
use crate::gate::caller::Caller;
use crate::jobs::health;
use crate::openapi::page::Page;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{object, text, texts_by_name};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;

/// The parameters that add resources to an endpoint in a response.
const INCLUDE: &[Parameter] = &[
    query("includeTemplate", ParameterKind::Flag, "adds the template to each endpoint"),
    query("includeWorkers", ParameterKind::Flag, "adds the workers to each endpoint"),
    query(
        "includeHealth",
        ParameterKind::Flag,
        "adds the counts of jobs and workers to each endpoint whose jobs the key may read",
    ),
];
/// Endpoints of a list whose resources are read concurrently.
const CONCURRENT: usize = 64;
/// How long the endpoints of a response may take together to say their counts. Those that take longer are shown without them.
const PATIENCE: Duration = Duration::from_secs(1);
const DRAIN: &[Parameter] = &[query("drain", ParameterKind::Flag, "waits until the running jobs have ended")];

/// The operations on endpoints.
pub(super) fn group() -> Group {
    let [list, create, get, update, update_by_post, delete] = operations!(
        "Endpoint",
        "Endpoints",
        "/v1/endpoints",
        "/v1/endpoints/{endpoint}",
        [list, create, get, update, delete],
    );
    let operations = vec![
        list.summary("every endpoint").with(INCLUDE),
        create
            .summary("creates an endpoint")
            .about("The request needs `templateId`, or a whole `template` that is created too."),
        get.summary("one endpoint").with(INCLUDE),
        update,
        update_by_post,
        delete.summary("deletes an endpoint and its jobs").with(DRAIN),
        Operation::post("CreateWorkerToken", "/v1/endpoints/{endpoint}/worker-token", worker_token)
            .summary("the environment that an external worker needs")
            .gives("WorkerToken"),
    ];
    let template_id = templates::example().map(|template| template.id);
    let create = json!({ "name": "Hello", "slug": "hello", "templateId": template_id, "workersMax": 2 });
    let mut schemas = schemas!(
        "Endpoint",
        ENDPOINT_FIELDS,
        &[],
        { read: example(), create: create, update: json!({ "workersMax": 5 }) },
    );
    let token = object(&[("token", text()), ("env", texts_by_name())], &["token", "env"]);
    schemas.push(("WorkerToken", token));
    Group { name: "Endpoints", about: "Queues and the settings of their workers.", operations, schemas }
}

fn example() -> Value {
    let members = [("name", json!("Hello")), ("slug", json!("hello")), ("workersMax", json!(2))];
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let template = templates::example();
    let endpoint = template.as_ref().and_then(|template| new_endpoint(members, template, EXAMPLE).ok());
    endpoint
        .and_then(|it| serde_json::to_value(views::endpoint(&it, template.as_ref(), Extras::default())).ok())
        .unwrap_or_default()
}

async fn create(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = may_manage(&state, &headers)?;
    let mut members = read_members(ENDPOINT_FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    check_webhook(&state, &members)?;
    check_provider(state.engine(), &members, None)?;
    let creation = || Creation { entropy: state.engine().entropy(), at: state.engine().now(), by: &key.id };
    let (template, inline) = match (members.remove("template"), members.get("templateId")) {
        (Some(Value::Object(inline)), None) => {
            (Arc::new(inline_template(state.engine(), inline, &members, creation())?), true)
        }
        (None, Some(_)) => (template_of(&state, &members)?, false),
        (Some(_), _) => return Err(bad_field("send either `templateId` or `template`, not both")),
        (None, None) => return Err(bad_field("`templateId` is required, or an inline `template` object")),
    };
    // The endpoint is checked before the template is stored, so that a refused request stores nothing.
    let endpoint = new_endpoint(members, &template, creation())?;
    if inline {
        check_secrets(&state, &template, None)?;
        check_code(&state, &template, None).await?;
    }
    let own = inline.then(|| Template::clone(&template));
    let stored = to_the_end(&state, |state| async move { store(&state, endpoint, own).await }).await?;
    tracing::info!(endpoint = %stored.id, by = %key.id, "endpoint created");
    let view = shown(&state, &stored, Some(&template), Extras { template: inline, workers: None });
    Ok(ETag::of(state.engine(), &*stored).answer(view))
}

/// Refuses a webhook at an address that the server never calls. A stored webhook is not checked: the settings can
/// change.
pub(super) fn check_webhook(state: &HttpState, members: &Map<String, Value>) -> Result<(), ApiError> {
    let url = members.get("webhook").and_then(Value::as_str).and_then(web_address);
    match url {
        Some(url) if !state.engine().may_call_webhook(&url) => {
            Err(EnvelopeError::webhook_never_allowed().into())
        }
        _ => Ok(()),
    }
}

/// Why a server starts no containers, after what it does not do.
pub(super) const NO_DOCKER: &str = ", because it has found no Docker daemon; name its unix socket as `socket` in [docker] of the settings, or in DOCKER_HOST";

/// Refuses a provider whose workers this server cannot start. An endpoint keeps the `present` provider that it has.
pub(super) fn check_provider(
    engine: &Engine,
    members: &Map<String, Value>,
    present: Option<Provider>,
) -> Result<(), ApiError> {
    let Some(sent) = members.get("provider").and_then(Value::as_str) else { return Ok(()) };
    let providers = engine.providers();
    if providers.iter().chain(&present).any(|provider| provider.as_str() == sent) {
        return Ok(());
    }
    let started = if sent == Provider::Process.as_str() { "processes" } else { "containers" };
    let remedy = if sent == Provider::Docker.as_str() { NO_DOCKER } else { "" };
    let known: Vec<String> = providers.iter().map(|provider| format!("`{}`", provider.as_str())).collect();
    Err(bad_field(format!(
        "`provider` is {sent:?}, and this server starts no {started}{remedy}; use {}",
        known.join(" or ")
    )))
}

/// Stores an endpoint and, first, the template `own` that came with it. If the endpoint is refused, the template is
/// deleted again.
async fn store(
    state: &HttpState,
    endpoint: Endpoint,
    own: Option<Template>,
) -> Result<Arc<Endpoint>, ApiError> {
    let template = endpoint.template_id;
    let inline = own.is_some();
    if let Some(own) = own {
        state.engine().catalog().create_template(own).await?;
    }
    let refused = match state.engine().create_endpoint(endpoint).await {
        Ok(stored) => return Ok(stored),
        Err(refused) => refused,
    };
    if inline && let Err(error) = state.engine().catalog().delete_template(&template, |_| true).await {
        tracing::warn!(%template, %error, "template of a refused endpoint not deleted");
    }
    Err(refused.into())
}

/// The template inside a request that creates an endpoint. Without a name it is named after the endpoint.
fn inline_template(
    engine: &Engine,
    mut template: Map<String, Value>,
    endpoint: &Map<String, Value>,
    creation: Creation<'_>,
) -> Result<Template, ApiError> {
    if !template.contains_key("name") {
        let id = TemplateId::mint(creation.entropy);
        let name = endpoint.get("name").and_then(Value::as_str).unwrap_or("endpoint");
        template.insert("name".to_owned(), json!(format!("{name} ({id})")));
    }
    resolve_endpoints(engine, &mut template, &SharedWith::default())?;
    new_template(template, creation)
}

/// The template that a request names.
fn template_of(state: &HttpState, members: &Map<String, Value>) -> Result<Arc<Template>, ApiError> {
    let text = members.get("templateId").and_then(Value::as_str).unwrap_or_default();
    let template = text.parse().ok().and_then(|id| state.engine().catalog().template(&id));
    template.ok_or_else(|| bad_field(format!("`templateId` is {text:?}; no template has this id")))
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let caller = auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?;
    let query = Query::of(&uri)?;
    let page = Page::of(&uri, &query)?;
    let now = auth::now_for(&caller, &state);
    let mut readable = state.engine().endpoints();
    readable.retain(|one| caller.permits(Permission::ReadCatalog, Some(&one.id()), now));
    let key = |endpoint: &EndpointHandle| {
        let record = endpoint.record();
        (record.created_at, record.id.to_string())
    };
    let (endpoints, cursor) = page.cut(readable, key);
    let (state, caller, query, deadline) = (&state, &caller, &query, Instant::now() + PATIENCE);
    let views =
        iter(endpoints).map(|endpoint| async move { view(state, caller, &endpoint, query, deadline).await });
    let views: Vec<_> = views.buffered(CONCURRENT).try_collect().await?;
    Ok(page.answer(views, cursor))
}

async fn get(
    State(state): State<HttpState>,
    PathId(id): PathId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (key, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let query = Query::of(&uri)?;
    let tag = ETag::of(state.engine(), &*endpoint.record());
    let view = view(&state, &key, &endpoint, &query, Instant::now() + PATIENCE).await?;
    let has_more =
        query.flag("includeTemplate")? || query.flag("includeWorkers")? || query.flag("includeHealth")?;
    let tag = if has_more { tag.beside(state.engine(), &view) } else { tag };
    Ok(tag.answer_get(&headers, view))
}

/// An endpoint with the resources that the query adds, as far as the key may read them, and the counts if they are there by
/// `deadline`.
async fn view(
    state: &HttpState,
    key: &Caller,
    endpoint: &EndpointHandle,
    query: &Query,
    deadline: Instant,
) -> Result<EndpointView, ApiError> {
    let record = endpoint.record();
    let template = state.engine().catalog().template(&record.template_id);
    let workers = if query.flag("includeWorkers")? {
        Some(pods::of_endpoint(state, endpoint, may_see_machines(state, key)).await)
    } else {
        None
    };
    let extras = Extras { template: query.flag("includeTemplate")?, workers: workers.as_deref() };
    let mut view = shown(state, &record, template.as_deref(), extras);
    let may_read_jobs = || key.permits(Permission::ReadJobs, Some(&record.id), auth::now_for(key, state));
    if query.flag("includeHealth")?
        && may_read_jobs()
        && let Some(health) = health::by(state, endpoint, deadline).await
    {
        view.set("health", health);
    }
    if let Some(template) = view.0.get_mut("template") {
        hide_others(state, key, template);
    }
    Ok(view)
}

/// An endpoint as events show it: as the operation that reads one.
pub(super) fn for_events(state: &HttpState, record: &Endpoint) -> EndpointView {
    let template = state.engine().catalog().template(&record.template_id);
    shown(state, record, template.as_deref(), Extras::default())
}

/// An endpoint with the server's values for the settings that the endpoint leaves open.
pub(super) fn shown(
    state: &HttpState,
    endpoint: &Endpoint,
    used: Option<&Template>,
    extras: Extras<'_>,
) -> EndpointView {
    let mut view = views::endpoint(endpoint, used, extras);
    view.set("stopGraceMs", json!(state.engine().stop_grace_ms(endpoint)));
    view.set("streamShape", json!(state.stream_shape_of(endpoint)));
    view
}

async fn update(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let members = read_members(ENDPOINT_FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    may_name(&state, &key, ENDPOINT_FIELDS, &members, &SentCode::default())?;
    check_webhook(&state, &members)?;
    let present = endpoint.record();
    check_provider(state.engine(), &members, Some(present.provider))?;
    let template = if members.contains_key("templateId") {
        template_of(&state, &members)?
    } else {
        state.engine().catalog().template(&present.template_id).ok_or_else(ApiError::internal)?
    };
    changed_endpoint(&present, members.clone(), &template)?;
    let (used, by) = (Arc::clone(&template), Arc::clone(&key.key));
    let expected = IfMatch::of(&headers);
    let stored = to_the_end(&state, |state| async move {
        // Checked again on the stored record: another request may have changed it meanwhile.
        let engine = state.engine();
        let change = |endpoint: &mut Endpoint| {
            may_name(&state, &by, ENDPOINT_FIELDS, &members, &SentCode::default())?;
            expected.check(engine, endpoint)?;
            check_provider(engine, &members, Some(endpoint.provider))?;
            *endpoint = changed_endpoint(endpoint, members, &used)?;
            Ok(())
        };
        engine.update_endpoint(present.id.as_str(), &by.id, change).await
    })
    .await?;
    endpoint.workers().outdated_drained(stored.version).await;
    tracing::info!(endpoint = %stored.id, by = %key.id, "endpoint changed");
    let view = shown(&state, &stored, Some(&template), Extras::default());
    Ok(ETag::of(state.engine(), &*stored).answer(view))
}

async fn delete(
    State(state): State<HttpState>,
    PathId(id): PathId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let endpoint = endpoint.id();
    let drain = Query::of(&uri)?.flag("drain")?;
    let expected = IfMatch::of(&headers);
    to_the_end(&state, |state| async move {
        let engine = state.engine();
        let as_expected = |endpoint: &Endpoint| expected.is_met(engine, endpoint);
        Ok(engine.delete_endpoint(endpoint.as_str(), drain, as_expected).await?)
    })
    .await?;
    tracing::info!(%endpoint, by = %key.id, "endpoint deleted");
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /v1/endpoints/{id}/worker-token`: the token and the environment with which an external worker serves this
/// endpoint. Each call returns a new worker id; the token is the same for all workers.
async fn worker_token(State(state): State<HttpState>, PathId(id): PathId, headers: HeaderMap) -> JsonResult {
    let (key, endpoint) = may_manage_endpoint(&state, &headers, &id)?;
    let endpoint = endpoint.record();
    let base = state.workers_url().map(str::to_owned).or_else(|| base_url(&headers)).ok_or_else(|| {
        ApiError::bad_request(
            "bad_request",
            "the request has no `Host` header, from which workers' addresses are made",
        )
    })?;
    let token = state.engine().worker_token(&endpoint.id);
    let env = state.engine().worker_environment(&endpoint, &base);
    tracing::info!(endpoint = %endpoint.id, by = %key.id, "worker token shown");
    Ok(json!({ "token": token, "env": env }).into())
}

fn bad_field(text: impl Into<std::borrow::Cow<'static, str>>) -> ApiError {
    ApiError::bad_request("bad_field", text)
}
