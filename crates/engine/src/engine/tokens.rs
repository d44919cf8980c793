//! Worker tokens: one per endpoint, derived from a secret of the installation, so that they survive restarts
//! without being stored and end with their endpoint.

use std::collections::BTreeMap;

use longshore_model::{Endpoint, EndpointId};
use ring::hmac;

use super::Engine;
use crate::WorkerSettings;
use crate::supervisor::environment::{environment, mint_worker};

/// What every worker token begins with.
const PREFIX: &str = "lsw_";

impl Engine {
    /// Makes the token with which workers (of one endpoint; all of them share it) authenticate:
    /// `lsw_<endpoint id>_<mac>`.
    pub fn worker_token(&self, endpoint: &EndpointId) -> String {
        let mac = hmac::sign(&self.inner.token_key, endpoint.as_str().as_bytes());
        format!("{PREFIX}{endpoint}_{}", const_hex::encode(mac))
    }

    /// A text that changes whenever `content` does, and from which nobody can tell what that is.
    pub fn fingerprint(&self, content: &[u8]) -> String {
        // Worker tokens are the codes of endpoints' ids, which have no such beginning.
        let mut signing = hmac::Context::with_key(&self.inner.token_key);
        signing.update(b"fingerprint:");
        signing.update(content);
        const_hex::encode(&signing.sign().as_ref()[..16])
    }

    /// What a worker from outside needs in its environment to work for `endpoint`, which it reaches at
    /// `base_url`: a new id, the endpoint's token and the addresses.
    pub fn worker_environment(&self, endpoint: &Endpoint, base_url: &str) -> BTreeMap<String, String> {
        let settings = WorkerSettings { base_url: base_url.to_owned(), ..self.inner.workers.clone() };
        let token = self.worker_token(&endpoint.id);
        // Eight letters are always a worker id; without one the SDK makes one up and does not ping.
        let worker = mint_worker(self.entropy());
        worker.map_or_else(BTreeMap::new, |worker| {
            environment(endpoint, &BTreeMap::new(), &settings, &token, &worker)
        })
    }

    /// Whether `token` is the worker token of `endpoint`; compared in constant time.
    pub fn is_worker_token(&self, endpoint: &EndpointId, token: &str) -> bool {
        let mac = token.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(endpoint.as_str()));
        let mac = mac.and_then(|rest| rest.strip_prefix('_')).and_then(|mac| const_hex::decode(mac).ok());
        let Some(mac) = mac else { return false };
        hmac::verify(&self.inner.token_key, endpoint.as_str().as_bytes(), &mac).is_ok()
    }
}
