//! Worker tokens: one for each endpoint, derived from a secret of the installation. So they need no storage, stay the
//! same after a restart and end with their endpoint.

use std::collections::BTreeMap;

use longshore_launch::InstallationId;
use longshore_model::{Endpoint, EndpointId};
use ring::hmac;

use super::Engine;
use crate::supervisor::environment::{ServerAccess, environment, mint_worker};

/// The prefix of every worker token.
const PREFIX: &str = "lsw_";

impl Engine {
    /// The token with which the workers of an endpoint authenticate: `lsw_<endpoint id>_<mac>`. All workers of the
    /// endpoint have the same one.
    pub fn worker_token(&self, endpoint: &EndpointId) -> String {
        let mac = hmac::sign(&self.inner.token_key, endpoint.as_str().as_bytes());
        format!("{PREFIX}{endpoint}_{}", const_hex::encode(mac))
    }

    /// A text of 32 hexadecimal digits that identifies `content` and does not reveal it: the first half of its HMAC
    /// under the secret of the installation.
    pub fn fingerprint(&self, content: &[u8]) -> String {
        // Worker tokens are HMACs of endpoint ids, which never begin with this prefix.
        let mut signing = hmac::Context::with_key(&self.inner.token_key);
        signing.update(b"fingerprint:");
        signing.update(content);
        const_hex::encode(&signing.sign().as_ref()[..16])
    }

    /// The identity of this installation. A copy of the data has the same one.
    pub(super) fn installation(&self) -> InstallationId {
        // Worker tokens are HMACs of endpoint ids, which never begin with this prefix.
        let digest = hmac::sign(&self.inner.token_key, b"installation:");
        let bytes = digest.as_ref().first_chunk().copied().unwrap_or_default();
        InstallationId(u128::from_be_bytes(bytes))
    }

    /// The environment variables of an external worker of `endpoint` that reaches this server at `base_url`: a new
    /// worker id, the endpoint's token and the addresses.
    pub fn worker_environment(&self, endpoint: &Endpoint, base_url: &str) -> BTreeMap<String, String> {
        let token = self.worker_token(&endpoint.id);
        let server = ServerAccess { url: base_url, token: &token, settings: &self.inner.workers };
        // Eight letters are always a worker id, so `None` does not occur.
        let worker = mint_worker(self.entropy());
        worker.map_or_else(BTreeMap::new, |worker| environment(endpoint, BTreeMap::new(), &server, &worker))
    }

    /// Whether `token` is the worker token of `endpoint`. The comparison takes constant time.
    pub fn is_worker_token(&self, endpoint: &EndpointId, token: &str) -> bool {
        let mac = token.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(endpoint.as_str()));
        let mac = mac.and_then(|rest| rest.strip_prefix('_')).and_then(|mac| const_hex::decode(mac).ok());
        let Some(mac) = mac else { return false };
        hmac::verify(&self.inner.token_key, endpoint.as_str().as_bytes(), &mac).is_ok()
    }
}
