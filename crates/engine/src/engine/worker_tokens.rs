//! Worker tokens: one for each managed worker, and one for the external workers of an endpoint. They are derived from a
//! secret of the installation. So they need no storage, stay the same after a restart and end with their endpoint.

use std::collections::BTreeMap;

use longshore_launch::InstallationId;
use longshore_model::{CodeHash, Endpoint, EndpointId, WorkerId};
use ring::hmac;

use super::Engine;
use crate::EndpointHandle;
use crate::supervisor::environment::{ServerAccess, environment, mint_worker};

/// The variable with the address of the code that a worker fetches.
const CODE_URL_ENV: &str = "LONGSHORE_CODE_URL";
/// The prefix of every worker token.
const PREFIX: &str = "lsw_";

impl Engine {
    /// The token with which the external workers of an endpoint authenticate: `lsw_<endpoint id>_<mac>`. All of them have
    /// the same one. Managed workers that an older version started have it, too.
    pub fn worker_token(&self, endpoint: &EndpointId) -> String {
        let mac = hmac::sign(&self.inner.token_key, endpoint.as_str().as_bytes());
        format!("{PREFIX}{endpoint}_{}", const_hex::encode(mac))
    }

    /// The token of one managed worker: `lsw_<endpoint id>_<worker id>_<mac>`. It is valid while the worker is one of
    /// the [`AdmittedWorkers`](crate::admitted_workers::AdmittedWorkers) of the endpoint, for paths with this worker's id.
    pub(super) fn managed_worker_token(&self, endpoint: &EndpointId, worker: &WorkerId) -> String {
        let mac = hmac::sign(&self.inner.token_key, managed_content(endpoint, worker.as_str()).as_bytes());
        format!("{PREFIX}{endpoint}_{worker}_{}", const_hex::encode(mac))
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
    /// worker id, the endpoint's token and the addresses, also that of the code that the endpoint runs, if it runs any.
    pub fn worker_environment(&self, endpoint: &Endpoint, base_url: &str) -> BTreeMap<String, String> {
        let token = self.worker_token(&endpoint.id);
        let server = ServerAccess { url: base_url, token: &token, settings: &self.inner.workers };
        // Eight letters are always a worker id, so `None` does not occur.
        let worker = mint_worker(self.entropy());
        let mut env = worker
            .map_or_else(BTreeMap::new, |worker| environment(endpoint, BTreeMap::new(), &server, &worker));
        let template = self.catalog().template(&endpoint.template_id);
        if let Some(Ok(code)) = template.and_then(|it| CodeHash::in_workdir(it.workdir.as_deref()?)) {
            env.insert(CODE_URL_ENV.to_owned(), format!("{base_url}/v2/{}/code/{code}", endpoint.id));
        }
        env
    }

    /// Whether `token` is a valid worker token of `endpoint` for the worker with the id `worker`; `None`: for any worker.
    /// The comparison takes constant time.
    pub fn is_worker_token(&self, endpoint: &EndpointHandle, token: &str, worker: Option<&str>) -> bool {
        let id = endpoint.id();
        let rest = token.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(id.as_str()));
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix('_')) else { return false };
        match rest.rsplit_once('_') {
            None => self.is_mac(id.as_str(), rest),
            Some((of, mac)) => {
                let is_admitted = |of: WorkerId| endpoint.shared().admitted.permits(&of);
                worker.is_none_or(|worker| worker == of)
                    && self.is_mac(&managed_content(&id, of), mac)
                    && of.parse().is_ok_and(is_admitted)
            }
        }
    }

    /// Whether `mac` is the MAC of `content`, in hexadecimal digits.
    fn is_mac(&self, content: &str, mac: &str) -> bool {
        const_hex::decode(mac)
            .is_ok_and(|mac| hmac::verify(&self.inner.token_key, content.as_bytes(), &mac).is_ok())
    }
}

/// What the token of a managed worker signs. An endpoint's id, which the other tokens sign, has no colon.
fn managed_content(endpoint: &EndpointId, worker: &str) -> String {
    format!("worker:{endpoint}:{worker}")
}
