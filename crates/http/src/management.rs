//! The management API, `/v1`: endpoints, templates, keys and the other resources.
//!
//! The fields of a resource are data ([`fields`]). Requests are checked against them, and their members are laid over
//! the stored record ([`from_fields`]). Responses show the record without its secrets ([`views`]), and the API's document
//! has the fields' schemas ([`schemas`]). Each file of handlers lists its operations in `group()`. The handlers of
//! templates, secrets, network volumes and registries' credentials are the same ([`shared_resource`]).

mod access;
mod api_key_fields;
mod api_keys;
mod attention;
mod audit;
pub(crate) mod audit_trail;
mod base_url;
mod billing;
mod bulk;
mod code;
mod collector;
mod deploy;
mod docs;
mod document;
mod endpoint_fields;
mod endpoints;
mod etag;
mod failures;
pub(crate) mod fields;
mod from_fields;
pub(crate) mod full_disk;
mod gauges;
mod history;
#[cfg(test)]
mod hostile;
mod images;
mod json_members;
mod lb_fields;
mod log_tail;
mod logs;
mod machines;
pub(crate) mod me;
mod nodes;
mod objectives;
mod operations;
mod pods;
mod references;
mod registry_auth_fields;
mod registry_auths;
mod requests;
mod schemas;
mod search;
mod secret_fields;
mod secrets;
mod server;
mod sessions;
mod shared_resource;
mod slow_states;
mod stored_record;
mod template_fields;
mod templates;
mod versions;
mod views;
mod volume_fields;
mod volumes;
mod webhook_secrets;
mod webhooks;
mod worker_control;
mod worker_gpus;
mod workers;

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use bytes::Bytes;
use longshore_engine::Engine;
use longshore_model::Millis;
use longshore_model::limits::MANAGEMENT_BODY_BYTES_MAX;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::openapi::Group;
use crate::openapi::page::Page;
use crate::wire::api_error::ApiError;
use crate::wire::body;
use crate::wire::query::Query;
use crate::{HttpState, events, jobs, lb, openai};

pub use code::forget_unused_code;
pub(crate) use from_fields::MASK;

/// Every table of fields that requests are checked against.
#[cfg(test)]
pub(crate) fn tables() -> [(&'static str, &'static [fields::Field]); 7] {
    [
        ("endpoint", endpoint_fields::ENDPOINT_FIELDS),
        ("template", template_fields::TEMPLATE_FIELDS),
        ("volume", volume_fields::VOLUME_FIELDS),
        ("auth", registry_auth_fields::REGISTRY_AUTH_FIELDS),
        ("secret", secret_fields::SECRET_FIELDS),
        ("key", api_key_fields::API_KEY_FIELDS),
        ("scope", api_key_fields::SCOPE_FIELDS),
    ]
}

/// A JSON document, or the error to answer with.
type JsonResult = Result<axum::Json<Value>, ApiError>;

/// Every operation of the router.
pub(crate) fn all_groups() -> Vec<Group> {
    let mut all = groups();
    all.push(jobs::group());
    all.push(openai::group());
    all
}

/// Every operation that the API's document has: those of the router, and the forwarded requests.
pub(crate) fn documented_groups() -> Vec<Group> {
    let mut all = all_groups();
    all.push(lb::group());
    all
}

/// Every operation of the management API. A new kind of resource is a file with a `group()`, which is added here.
pub(crate) fn groups() -> Vec<Group> {
    vec![
        endpoints::group(),
        deploy::group(),
        versions::group(),
        workers::group(),
        history::group(),
        failures::group(),
        objectives::group(),
        logs::group(),
        worker_control::group(),
        webhooks::group(),
        webhook_secrets::group(),
        templates::group(),
        secrets::group(),
        code::group(),
        images::group(),
        registry_auths::group(),
        volumes::group(),
        api_keys::group(),
        me::group(),
        sessions::group(),
        pods::group(),
        billing::group(),
        bulk::group(),
        attention::group(),
        requests::group(),
        search::group(),
        audit::group(),
        events::group(collector::start),
        machines::group(),
        nodes::group(),
        server::group(),
        document::group(),
    ]
}

/// The id in a path. An id that is not UTF-8 is read as the empty text, which no resource has: the answer is 404, and
/// only after the key was checked.
struct PathId(String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let id = Path::from_request_parts(parts, state).await;
        Ok(Self(id.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// The two ids in a path, read as [`PathId`] is. The second is empty in a path with one id.
struct PathIds([String; 2]);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let mut ids = [String::new(), String::new()];
        if let Ok(params) = RawPathParams::from_request_parts(parts, state).await {
            for (id, (_, text)) in ids.iter_mut().zip(&params) {
                text.clone_into(id);
            }
        }
        Ok(Self(ids))
    }
}

/// Answers one page of a list. `key` returns the creation time and the id that the list is sorted by.
fn list_all<T>(
    (state, uri, headers): (&HttpState, &Uri, &HeaderMap),
    all: impl FnOnce(&Engine) -> Vec<T>,
    key: impl Fn(&T) -> (Millis, String),
    view: impl Fn(&T) -> Value,
) -> Result<Response, ApiError> {
    access::may_read(state, headers)?;
    let page = Page::of(uri, &Query::of(uri)?)?;
    let (items, cursor) = page.cut(all(state.engine()), key);
    Ok(page.answer(items.iter().map(view).collect(), cursor))
}

/// Runs a change in a task of its own, so that a client that disconnects does not stop it halfway.
///
/// # Errors
///
/// The error of `change`, or 500 if the task panicked.
pub(crate) async fn to_the_end<T: Send + 'static, C>(
    state: &HttpState,
    change: impl FnOnce(HttpState) -> C,
) -> Result<T, ApiError>
where
    C: Future<Output = Result<T, ApiError>> + Send + 'static,
{
    let (reply, outcome) = oneshot::channel();
    let change = crate::audit::continued(change(state.clone()));
    state.engine().spawn(async move {
        // A closed channel is no error: the client disconnected.
        let _ = reply.send(change.await);
    });
    // The task is never aborted, so the channel closes without an outcome only after a panic.
    outcome.await.unwrap_or_else(|_| Err(ApiError::internal()))
}

async fn read_body(state: &HttpState, body: Body) -> Result<Bytes, ApiError> {
    Ok(body::read(body, MANAGEMENT_BODY_BYTES_MAX, state.budget()).await?.bytes)
}
