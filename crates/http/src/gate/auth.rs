//! Authentication and authorization: which key a request carries, and what the key permits.
//!
//! A key's text is `ls_<id>_<secret>`. The server stores only its SHA-256 and looks keys up by it. The time of that
//! comparison reveals at most something about a hash, from which no key follows.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use longshore_engine::{EndpointHandle, OpenSession, TrackedKey};
use longshore_model::{ApiKey, EndpointId, KeyId, KeyScope, Millis, Permission};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::HttpState;
use crate::audit::{Entry, note_key};
use crate::gate::caller::{Caller, key_of};
use crate::gate::client;
use crate::wire::api_error::ApiError;

/// The id of the operator's key, whose text the operator chose.
pub(crate) const OPERATOR: &str = KeyId::OPERATOR;

/// The credential of a request: `Authorization: Bearer X` or, as many clients and all workers send it, `Authorization:
/// X`. `None` if it is missing or empty.
pub(crate) fn credential(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let bare = match value.split_at_checked(6) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer") => match rest.first() {
            None | Some(b' ' | b'\t') => rest.trim_ascii_start(),
            Some(_) => value,
        },
        _ => value,
    };
    (!bare.is_empty()).then_some(bare)
}

/// Returns the key that a request carries, or whose session it has, if the key is known, active and within its rate. Does not check any
/// permission. Must be called once per request, because each call counts against the key's rate.
fn live_key(state: &HttpState, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let found = match credential(headers) {
        Some(text) => look_up(state, text).map(|key| Caller { key, session: None }),
        None => Caller::of_session(state, headers),
    };
    let key = found.ok_or_else(ApiError::unauthorized)?;
    if !key.is_alive(now_for(&key, state)) {
        return Err(ApiError::unauthorized());
    }
    let address = client::address(state, headers);
    if key.touch(address.as_ref()) {
        let address = address.map(|client| client.address.to_string());
        tracing::info!(key = %key.id, address, "key used from a new address");
        if let Some(log) = state.audit() {
            let now = state.engine().now();
            log.note(now, Entry::new_address(now, &key, address));
        }
    }
    if let Some(rate) = key.rate_limit.filter(|_| key.session.is_none()) {
        state.limiter().admit_key(&key.id, rate)?;
    }
    Ok(key)
}

/// The key with this text, if it is active.
pub(crate) fn active_key(state: &HttpState, text: &[u8]) -> Option<Arc<TrackedKey>> {
    look_up(state, text).filter(|key| key.is_alive(state.engine().now()))
}

/// The key with this text; `None` if the server stores no such key.
fn look_up(state: &HttpState, text: &[u8]) -> Option<Arc<TrackedKey>> {
    let mut digits = [0; 64];
    let hash = const_hex::encode_to_str(digest(&SHA256, text), &mut digits).ok()?;
    state.engine().keys().by_hash(hash)
}

/// The present time if the key has an expiry, else 0. Most keys have none, and reading the clock costs as much as the
/// rest of the check.
pub(crate) fn now_for(key: &ApiKey, state: &HttpState) -> Millis {
    key.expires_at.map_or(Millis(0), |_| state.engine().now())
}

/// Checks that the key of a request has `permission` for the whole catalog, and returns the key.
pub(crate) fn authorize(
    state: &HttpState,
    headers: &HeaderMap,
    permission: Permission,
) -> Result<Caller, ApiError> {
    authorize_if(state, headers, |key| key.permits(permission, None, now_for(key, state)))
}

/// Whether a key may read the whole catalog.
pub(crate) fn reads_catalog(state: &HttpState, key: &ApiKey) -> bool {
    key.permits(Permission::ReadCatalog, None, now_for(key, state))
}

/// Checks that the key of a request has `permission` for at least one endpoint, and returns the key.
pub(crate) fn authorize_somewhere(
    state: &HttpState,
    headers: &HeaderMap,
    permission: Permission,
) -> Result<Caller, ApiError> {
    authorize_if(state, headers, |key| key.has_scope_for(permission))
}

/// Returns the key of a request. The key needs no particular permission.
pub(crate) fn authorize_any(state: &HttpState, headers: &HeaderMap) -> Result<Caller, ApiError> {
    authorize_if(state, headers, |_| true)
}

fn authorize_if(
    state: &HttpState,
    headers: &HeaderMap,
    permits: impl FnOnce(&TrackedKey) -> bool,
) -> Result<Caller, ApiError> {
    let key = live_key(state, headers)?;
    note_key(&key);
    if permits(&key) { Ok(key) } else { Err(ApiError::unauthorized()) }
}

/// Checks that the key of a request has `permission` for the endpoint with this id or slug, and returns the key and the
/// endpoint.
/// 401 comes before 404, so a request without a permitting key reveals no endpoint.
pub(crate) fn authorize_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    permission: Permission,
    id_or_slug: &str,
) -> Result<(Caller, EndpointHandle), ApiError> {
    let key = live_key(state, headers)?;
    if permission == Permission::WriteCatalog {
        note_key(&key);
    }
    let endpoint = state.engine().endpoint(id_or_slug);
    // An endpoint that does not exist gets an id that no key lists: a key for some endpoints learns of no others.
    let unlisted = || id_or_slug.parse().unwrap_or_else(|_| EndpointId::mint(0));
    let id = endpoint.as_ref().map_or_else(unlisted, EndpointHandle::id);
    if !key.permits(permission, Some(&id), now_for(&key, state)) {
        return Err(ApiError::unauthorized());
    }
    endpoint.map(|endpoint| (key, endpoint)).ok_or_else(ApiError::no_such_endpoint)
}

/// The permission of a key for an endpoint, from when a long response began. Checked again before each part of the
/// response, so that the response ends once the key is revoked, disabled or expired, or the session is over.
pub(crate) struct OngoingAccess {
    key: OngoingKey,
    permission: Permission,
    endpoint: EndpointId,
}

impl OngoingAccess {
    pub(crate) fn of(caller: &Caller, permission: Permission, endpoint: EndpointId) -> Self {
        Self { key: OngoingKey::of(caller), permission, endpoint }
    }

    /// Whether the key still has the permission.
    pub(crate) fn holds(&self, state: &HttpState) -> bool {
        let key = self.key.key(state);
        key.is_some_and(|key| key.permits(self.permission, Some(&self.endpoint), now_for(&key, state)))
    }
}

/// The key of a long response that is about several endpoints. It is looked up again before each part of the response.
pub(crate) struct OngoingKey {
    key: String,
    session: Option<Arc<OpenSession>>,
}

impl OngoingKey {
    pub(crate) fn of(caller: &Caller) -> Self {
        Self { key: caller.id.clone(), session: caller.session.clone() }
    }

    /// The key as it is now; `None` if it was revoked, disabled or has expired, or the session is over.
    pub(crate) fn key(&self, state: &HttpState) -> Option<Arc<TrackedKey>> {
        let key = match &self.session {
            None => state.engine().keys().get(&self.key),
            Some(session) => key_of(state, session).filter(|_| is_still_open(state, session)),
        };
        key.filter(|key| key.is_alive(now_for(key, state)))
    }
}

/// Returns the id of the endpoint with this id or slug, if the key may read its settings or its jobs.
///
/// # Errors
///
/// 401 if the key may do neither, also for an endpoint that does not exist if the key names its endpoints; else 404.
pub(crate) fn readable_endpoint(
    state: &HttpState,
    key: &ApiKey,
    id_or_slug: &str,
) -> Result<EndpointId, ApiError> {
    let endpoint = state.engine().endpoint(id_or_slug);
    let unlisted = || id_or_slug.parse().unwrap_or_else(|_| EndpointId::mint(0));
    let id = endpoint.as_ref().map_or_else(unlisted, EndpointHandle::id);
    let now = now_for(key, state);
    let may = |permission| key.permits(permission, Some(&id), now);
    if !may(Permission::ReadCatalog) && !may(Permission::ReadJobs) {
        return Err(ApiError::unauthorized());
    }
    endpoint.map(|endpoint| endpoint.id()).ok_or_else(ApiError::no_such_endpoint)
}

/// Whether a session was not ended and is not over.
fn is_still_open(state: &HttpState, session: &OpenSession) -> bool {
    let (engine, limits) = (state.engine(), &state.console().session_limits);
    engine.sessions().by_hash(&session.hash).is_some_and(|session| session.is_open(limits, engine.now()))
}

/// Checks that a request carries a token of the endpoint with this id or slug for the worker with the id `worker` (`None`: for
/// any worker), and returns the endpoint.
pub(crate) fn authorize_worker(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
    worker: Option<&str>,
) -> Result<EndpointHandle, ApiError> {
    let token = credential(headers).ok_or_else(ApiError::unauthorized)?;
    let endpoint = state.engine().endpoint(id_or_slug).ok_or_else(ApiError::unauthorized)?;
    let text = std::str::from_utf8(token).map_err(|_| ApiError::unauthorized())?;
    if !state.engine().is_worker_token(&endpoint, text, worker) {
        return Err(ApiError::unauthorized());
    }
    Ok(endpoint)
}

/// Whether a request carries any valid key or worker token. Routes that do not exist use it: a client without one gets
/// 401 there too.
pub(crate) fn is_known_caller(state: &HttpState, headers: &HeaderMap) -> bool {
    live_key(state, headers).is_ok() || is_any_worker(state, headers)
}

fn is_any_worker(state: &HttpState, headers: &HeaderMap) -> bool {
    let token = credential(headers).and_then(|token| std::str::from_utf8(token).ok());
    let endpoint = token.and_then(|token| token.strip_prefix("lsw_")?.split('_').next());
    endpoint.is_some_and(|endpoint| authorize_worker(state, headers, endpoint, None).is_ok())
}

/// Lower-case hex of the SHA-256 of a key's whole text.
fn hash_of(text: &[u8]) -> String {
    const_hex::encode(digest(&SHA256, text))
}

/// A new key. Its text is known at this moment only.
pub struct MintedKey {
    /// The text for the client: `ls_<id>_<secret>`, 256 random bits in the secret.
    pub text: String,
    /// The key as the server stores it, with the hash of its text.
    pub record: ApiKey,
}

impl fmt::Debug for MintedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MintedKey").field("id", &self.record.id).finish_non_exhaustive()
    }
}

/// Makes a key. `None` if the system has no random bytes.
pub fn mint_key(name: &str, scopes: Vec<KeyScope>, created_at: Millis) -> Option<MintedKey> {
    let mut random = [0_u8; 40];
    SystemRandom::new().fill(&mut random).ok()?;
    let (id, secret) = random.split_at(8);
    let id = const_hex::encode(id);
    let text = format!("ls_{id}_{}", const_hex::encode(secret));
    let hash = hash_of(text.as_bytes());
    let name = name.to_owned();
    let record = ApiKey::new(id, name, hash, scopes, created_at);
    Some(MintedKey { text, record })
}

/// The stored form of the operator's key, whose text the operator chose. The key permits everything. There is one such
/// key; another text replaces it.
pub fn admin_key(text: &str, created_at: Millis) -> ApiKey {
    let scopes = vec![
        KeyScope::manage_all(),
        KeyScope::Read { endpoint_ids: Vec::new() },
        KeyScope::Jobs { endpoint_ids: Vec::new() },
    ];
    let hash = hash_of(text.trim().as_bytes());
    ApiKey::new(OPERATOR.to_owned(), "the operator's key".to_owned(), hash, scopes, created_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_bearer_or_a_bare_key() {
        for (value, expected) in [
            ("Bearer ls_a_b", Some("ls_a_b")),
            ("bearer  ls_a_b ", Some("ls_a_b")),
            ("BEARER\tls_a_b", Some("ls_a_b")),
            ("ls_a_b", Some("ls_a_b")),
            ("bearerls_a_b", Some("bearerls_a_b")),
            ("Bearer", None),
            ("Bearer ", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            assert_eq!(credential(&headers), expected.map(str::as_bytes), "{value}");
        }
        assert_eq!(credential(&HeaderMap::new()), None);
    }

    #[test]
    fn a_minted_key_has_256_random_bits_and_is_kept_as_its_hash() {
        let scopes = vec![KeyScope::manage_all()];
        let one = mint_key("one", scopes.clone(), Millis(1)).unwrap();
        let two = mint_key("two", scopes, Millis(1)).unwrap();
        assert_ne!(one.text, two.text);
        let parts: Vec<_> = one.text.split('_').collect();
        assert_eq!((parts[0], parts[1], parts[2].len()), ("ls", one.record.id.as_str(), 64));
        assert_eq!(one.record.hash, hash_of(one.text.as_bytes()));
        assert!(!format!("{one:?}").contains(parts[2]));
    }

    #[test]
    fn an_operators_key_may_be_any_text_and_do_everything() {
        let key = admin_key("let me in\n", Millis(1));
        assert_eq!(key.hash, hash_of(b"let me in"));
        for permission in
            [Permission::WriteCatalog, Permission::ReadCatalog, Permission::ReadJobs, Permission::WriteJobs]
        {
            assert!(key.permits(permission, None, Millis(2)));
        }
    }

    #[test]
    fn hashes_are_lower_case_hex_of_sha_256() {
        assert_eq!(hash_of(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
