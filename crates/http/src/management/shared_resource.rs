//! Resources that endpoints share: templates, secrets, network volumes and registries' credentials. A [`SharedResource`] says
//! what a resource is; the handlers of its operations are here. Every handler checks in this order: the key, the id, the
//! body, the record, `If-Match`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use futures_util::future::join_all;
use longshore_engine::{EndpointHandle, TrackedKey};
use longshore_model::{Permission, SharedWith};
use serde_json::{Map, Value};

use super::access::may_manage;
use super::etag::{ETag, IfMatch};
use super::fields::{Field, Verb, read_members};
use super::from_fields::{Creation, changed_record};
use super::references::{SentCode, hide_others, may_name, resolve_endpoints};
use super::stored_record::StoredRecord;
use super::{PathId, read_body, to_the_end};
use crate::HttpState;
use crate::gate::auth;
use crate::gate::caller::Caller;
use crate::openapi::page::Page;
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;

/// A resource that endpoints share, as the management API creates, shows, changes and deletes it.
pub(super) trait SharedResource: StoredRecord {
    /// The name in log records, such as `network volume`.
    const NAME: &'static str;
    /// The error code and the error text for an id that no record has.
    const NOT_FOUND: (&'static str, &'static str);
    /// The fields that requests are checked against.
    const FIELDS: &'static [Field];
    /// The fields that a request for a new record must have.
    const REQUIRED: &'static [&'static str];

    /// Whether [`SharedResource::view`] shows more than the record, so that it can change while the record does not.
    const SHOWS_MORE: bool = false;

    /// The record as a client with this key reads it. The endpoints of others in `endpoints` are removed afterwards.
    fn view(&self, state: &HttpState, key: &TrackedKey) -> Value;

    /// Makes a record from the checked members of a request.
    fn new(members: Map<String, Value>, creation: Creation<'_>) -> Result<Self, ApiError>;

    /// Returns the record after a change by the checked members of a request.
    fn changed(&self, members: Map<String, Value>) -> Result<Self, ApiError> {
        changed_record(self, members)
    }

    /// Checks that the key of a request may create a record, and returns the key.
    fn may_create(state: &HttpState, headers: &HeaderMap) -> Result<Caller, ApiError> {
        may_manage(state, headers)
    }

    /// Checks and completes the members of a request that creates a record, before any of them is used.
    fn complete(
        _state: &HttpState,
        _key: &TrackedKey,
        _members: &mut Map<String, Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Checks that a key may delete the record with this id; `None` stands for a text that is no id.
    fn may_delete(_state: &HttpState, key: &TrackedKey, _id: Option<Self::Id>) -> Result<(), ApiError> {
        if key.manages_all() { Ok(()) } else { Err(ApiError::unauthorized()) }
    }

    /// Checks that a key may change the record with this id; `None` stands for a text that is no id.
    fn may_change(_state: &HttpState, key: &TrackedKey, _id: Option<Self::Id>) -> Result<(), ApiError> {
        if key.manages_all() { Ok(()) } else { Err(ApiError::unauthorized()) }
    }

    /// Checks that a key may read the record with this id; `None` stands for a text that is no id.
    fn may_read(state: &HttpState, key: &TrackedKey, _id: Option<Self::Id>) -> Result<(), ApiError> {
        if auth::reads_catalog(state, key) { Ok(()) } else { Err(ApiError::unauthorized()) }
    }

    /// Returns every record that a key may read, in any order.
    ///
    /// # Errors
    ///
    /// 401 for a key that may not list records of this kind.
    fn list_for(state: &HttpState, key: &TrackedKey) -> Result<Vec<Arc<Self>>, ApiError> {
        if auth::reads_catalog(state, key) {
            Ok(Self::list(state.engine()))
        } else {
            Err(ApiError::unauthorized())
        }
    }

    /// Checks what needs more than the record itself. `before` is the stored record that this one replaces.
    fn check(
        &self,
        _state: &HttpState,
        _before: Option<&Self>,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns the endpoints that start workers with this record, and so may have got a new version by its change.
    fn users(&self, _state: &HttpState) -> Vec<EndpointHandle> {
        Vec::new()
    }
}

/// `POST` of a new record.
pub(super) async fn create<R: SharedResource>(
    State(state): State<HttpState>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = R::may_create(&state, &headers)?;
    let mut members = read_members(R::FIELDS, &read_body(&state, body).await?, Verb::Create)?;
    R::complete(&state, &key, &mut members)?;
    resolve_endpoints(state.engine(), &mut members, &SharedWith::default())?;
    let creation = Creation { entropy: state.engine().entropy(), at: state.engine().now(), by: &key.id };
    let record = R::new(members, creation)?;
    record.check(&state, None).await?;
    let stored = to_the_end(&state, |state| async move { Ok(record.create(state.engine()).await?) }).await?;
    tracing::info!(resource = R::NAME, id = %stored.id(), by = %key.id, "resource created");
    Ok(ETag::of(state.engine(), &*stored).answer(shown(&state, &key, &*stored)))
}

/// `GET` of a page of the records.
pub(super) async fn list<R: SharedResource>(
    State(state): State<HttpState>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let key = auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?;
    let records = R::list_for(&state, &key)?;
    let page = Page::of(&uri, &Query::of(&uri)?)?;
    let (records, cursor) = page.cut(records, |record| (record.created_at(), record.id().to_string()));
    Ok(page.answer(records.iter().map(|record| shown(&state, &key, &**record)).collect(), cursor))
}

/// `GET` of one record.
pub(super) async fn get<R: SharedResource>(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let key = auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?;
    R::may_read(&state, &key, id.parse().ok())?;
    let record = R::find(state.engine(), parse::<R>(&id)?).ok_or_else(not_found::<R>)?;
    let view = shown(&state, &key, &*record);
    let tag = ETag::of(state.engine(), &*record);
    let tag = if R::SHOWS_MORE { tag.beside(state.engine(), &view) } else { tag };
    Ok(tag.answer_get(&headers, view))
}

/// `PATCH` of one record.
pub(super) async fn update<R: SharedResource>(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let key = auth::authorize_somewhere(&state, &headers, Permission::WriteCatalog)?;
    R::may_change(&state, &key, id.parse().ok())?;
    let id = parse::<R>(&id)?;
    let mut members = read_members(R::FIELDS, &read_body(&state, body).await?, Verb::Update)?;
    let sent = SentCode::of(&state, &key, &members).await?;
    may_name(&state, &key, R::FIELDS, &members, &sent)?;
    let present = R::find(state.engine(), id.clone()).ok_or_else(not_found::<R>)?;
    resolve_endpoints(state.engine(), &mut members, present.endpoints())?;
    present.changed(members.clone())?.check(&state, Some(&present)).await?;
    let expected = IfMatch::of(&headers);
    let by = Arc::clone(&key.key);
    let stored = to_the_end(&state, |state| async move {
        // Checked again on the record as it is then: another request may have come first.
        let engine = state.engine();
        let change = |record: &mut R| {
            R::may_change(&state, &by, Some(id.clone()))?;
            may_name(&state, &by, R::FIELDS, &members, &sent)?;
            expected.check(engine, record)?;
            *record = record.changed(members)?;
            Ok(())
        };
        R::update(engine, id.clone(), &by.id, change).await
    })
    .await?;
    // No job that is sent after the answer goes to a worker of the version before.
    let users = stored.users(&state);
    join_all(users.iter().map(|user| user.workers().outdated_drained(user.record().version))).await;
    tracing::info!(resource = R::NAME, id = %stored.id(), by = %key.id, "resource changed");
    Ok(ETag::of(state.engine(), &*stored).answer(shown(&state, &key, &*stored)))
}

/// `DELETE` of one record.
pub(super) async fn delete<R: SharedResource>(
    State(state): State<HttpState>,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let key = auth::authorize_somewhere(&state, &headers, Permission::WriteCatalog)?;
    R::may_delete(&state, &key, id.parse().ok())?;
    let id = parse::<R>(&id)?;
    R::find(state.engine(), id.clone()).ok_or_else(not_found::<R>)?;
    let expected = IfMatch::of(&headers);
    let (deleted, by) = (id.clone(), Arc::clone(&key.key));
    to_the_end(&state, |state| async move {
        let engine = state.engine();
        // Checked again on the record as it is then: another request may have come first.
        let as_expected = |record: &R| {
            R::may_delete(&state, &by, Some(record.id())).is_ok() && expected.is_met(engine, record)
        };
        Ok(R::delete(engine, deleted, as_expected).await?)
    })
    .await?;
    tracing::info!(resource = R::NAME, %id, by = %key.id, "resource deleted");
    Ok(StatusCode::NO_CONTENT)
}

/// The record as this key may read it.
fn shown<R: SharedResource>(state: &HttpState, key: &TrackedKey, record: &R) -> Value {
    let mut view = record.view(state, key);
    hide_others(state, key, &mut view);
    view
}

fn parse<R: SharedResource>(id: &str) -> Result<R::Id, ApiError> {
    id.parse().map_err(|_| not_found::<R>())
}

fn not_found<R: SharedResource>() -> ApiError {
    let (code, text) = R::NOT_FOUND;
    ApiError::new(StatusCode::NOT_FOUND, code, text)
}
