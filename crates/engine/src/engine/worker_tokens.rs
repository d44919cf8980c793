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

    /// The token of one managed worker on this computer: `lsw_<endpoint id>_<worker id>_<machine>_<mac>`, for paths with
    /// this worker's id. It is valid while the worker is one of the
    /// [`AdmittedWorkers`](crate::admitted_workers::AdmittedWorkers) of the endpoint. Workers that an older version started
    /// have tokens without a machine, which are valid as long.
    ///
    /// A worker of another computer was started by another server of the installation. After this server has taken its
    /// place, the worker goes on for `orphan_ms`, and its token is valid as long.
    pub(super) fn managed_worker_token(&self, endpoint: &EndpointId, worker: &WorkerId) -> String {
        let machine = self.machine();
        let content = managed_content(endpoint, worker.as_str(), Some(&machine));
        let mac = hmac::sign(&self.inner.token_key, content.as_bytes());
        format!("{PREFIX}{endpoint}_{worker}_{machine}_{}", const_hex::encode(mac))
    }

    /// This computer in tokens: eight hexadecimal digits, which its name has in this installation alone.
    fn machine(&self) -> String {
        let name = format!("machine:{}", self.inner.workers.machine);
        self.fingerprint(name.as_bytes()).chars().take(8).collect()
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
        match bearer(&self.inner.token_key, &endpoint.id(), token) {
            None => false,
            Some(Bearer::External) => true,
            Some(Bearer::Managed { worker: of, machine }) => {
                let is_admitted = |of: WorkerId| endpoint.shared().admitted.permits(&of);
                worker.is_none_or(|worker| worker == of)
                    && (of.parse().is_ok_and(is_admitted) || self.outlives_its_server(machine))
            }
        }
    }

    /// Whether a worker of this machine may still run without the server that started it.
    fn outlives_its_server(&self, machine: Option<&str>) -> bool {
        let ran_ms = self.inner.services.clock.now().since(self.inner.started_at);
        machine.is_some_and(|machine| machine != self.machine())
            && self.inner.workers.orphan_ms.is_none_or(|orphan_ms| ran_ms < orphan_ms)
    }
}

/// For whom a token was made.
#[derive(Debug, PartialEq, Eq)]
enum Bearer<'a> {
    /// The external workers of the endpoint.
    External,
    /// One managed worker, on this machine; `None` if a version without machines in tokens started it.
    Managed { worker: &'a str, machine: Option<&'a str> },
}

/// For whom this server, or an earlier one, made a token of an endpoint; `None` for any other text.
fn bearer<'a>(key: &hmac::Key, endpoint: &EndpointId, token: &'a str) -> Option<Bearer<'a>> {
    let rest = token.strip_prefix(PREFIX)?.strip_prefix(endpoint.as_str())?.strip_prefix('_')?;
    let is_mac = |content: &str, mac: &str| {
        const_hex::decode(mac).is_ok_and(|mac| hmac::verify(key, content.as_bytes(), &mac).is_ok())
    };
    let Some((of, mac)) = rest.rsplit_once('_') else {
        return is_mac(endpoint.as_str(), rest).then_some(Bearer::External);
    };
    // Ids of managed workers are letters and digits.
    let (worker, machine) = match of.split_once('_') {
        Some((worker, machine)) => (worker, Some(machine)),
        None => (of, None),
    };
    is_mac(&managed_content(endpoint, worker, machine), mac).then_some(Bearer::Managed { worker, machine })
}

/// What the token of a managed worker signs. An endpoint's id, which the other tokens sign, has no colon.
fn managed_content(endpoint: &EndpointId, worker: &str, machine: Option<&str>) -> String {
    match machine {
        Some(machine) => format!("worker:{endpoint}:{worker}:{machine}"),
        None => format!("worker:{endpoint}:{worker}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_bearer_and_cannot_be_changed() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret of the installation");
        let endpoint = EndpointId::mint(7);
        let made = |of: &str, content: &str| {
            let mac = const_hex::encode(hmac::sign(&key, content.as_bytes()));
            format!("lsw_{endpoint}_{of}{mac}")
        };
        let external = made("", endpoint.as_str());
        let managed = made("w1_0a0b0c0d_", &format!("worker:{endpoint}:w1:0a0b0c0d"));
        let earlier = made("w1_", &format!("worker:{endpoint}:w1"));
        let whose = |token: &str| bearer(&key, &endpoint, token).map(|it| format!("{it:?}"));
        for (token, expected) in [
            (&external, "External"),
            (&managed, "Managed { worker: \"w1\", machine: Some(\"0a0b0c0d\") }"),
            (&earlier, "Managed { worker: \"w1\", machine: None }"),
        ] {
            assert_eq!(whose(token).as_deref(), Some(expected));
        }
        for (from, to) in [("w1", "w2"), ("0a0b0c0d", "0a0b0c0e"), ("_0a0b0c0d", ""), ("lsw_", "ls_")] {
            assert_eq!(whose(&managed.replace(from, to)), None, "{to} in place of {from}");
        }
        assert_eq!(whose(&earlier.replace("w1_", "w1_0a0b0c0d_")), None, "no machine can be added");
        assert_eq!(bearer(&key, &EndpointId::mint(8), &managed), None, "of another endpoint");
    }
}
