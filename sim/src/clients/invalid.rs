//! Requests that the server must refuse.

use super::Client;
use crate::observation::HttpRequest;
use crate::raw_http::{get, post};
use crate::rng::Rng;

/// The id of a job that was never submitted.
const NO_JOB: &str = "0190ffff-ffff-7fff-bfff-0123456789ab";
/// Bodies that are no valid submit.
const BAD_BODIES: &[&str] = &[
    "",
    "{",
    "[]",
    "null",
    r#"{"input":3}"#,
    r#"{"input":null}"#,
    r#"{"Input":{}}"#,
    r#"{"input":{}}}"#,
    r#"{"input":{},"policy":7}"#,
    r#"{"input":{},"policy":{"executionTimeout":4999}}"#,
    r#"{"input":{},"policy":{"executionTimeout":604800001}}"#,
    r#"{"input":{},"policy":{"ttl":9999}}"#,
    r#"{"input":{},"policy":{"ttl":"soon"}}"#,
    r#"{"input":{},"policy":{"lowPriority":1}}"#,
    r#"{"input":{},"webhook":"not an address"}"#,
    r#"{"input":{},"webhook":"ftp://receiver-0.test/"}"#,
    r#"{"input":{},"s3Config":[]}"#,
];
/// Invalid `Authorization` headers.
const BAD_CREDENTIALS: &[&str] = &["", "Bearer", "Bearer nonsense", "lsw_nonsense_00", "Basic YTpi"];

impl Client {
    /// Sends a random invalid request.
    pub(super) async fn send_invalid(&self) {
        let request = {
            let mut rng = self.rng();
            let Some(endpoint) = self.endpoints.pick(&mut rng) else { return };
            self.invalid_request(&endpoint.id, &mut rng)
        };
        self.ask(request).await;
    }

    fn invalid_request(&self, endpoint: &str, rng: &mut Rng) -> HttpRequest {
        let credential = &*self.credential;
        let base = self.mount(endpoint, rng);
        let at = |rest: &str| format!("{base}/{rest}");
        match rng.range(0..=11) {
            0..=2 => post(at(any(rng, &["run", "runsync"])), credential, any(rng, BAD_BODIES)),
            3 => post(at("run"), any(rng, BAD_CREDENTIALS), r#"{"input":{}}"#),
            4 => get(at(&format!("status/{NO_JOB}")), credential),
            5 => {
                let gone = self.endpoints.pick_deleted(rng);
                let id = gone.as_ref().map_or("no-such-endpoint", |endpoint| &*endpoint.id);
                post(self.mount(id, rng) + "/run", credential, r#"{"input":{}}"#)
            }
            6 => post(
                at(any(rng, &["runsync?wait=999", "runsync?wait=300001", "runsync?wait=x"])),
                credential,
                r#"{"input":{}}"#,
            ),
            7 => get(at(&format!("status/{NO_JOB}?ttl=999")), credential),
            8 => get(
                at(any(rng, &["requests?limit=0", "requests?cursor=x&limit=2", "requests?status=DONE"])),
                credential,
            ),
            9 => {
                let mut request = post(at("run"), credential, r#"{"input":{}}"#);
                request.headers.push(("idempotency-key", "k".repeat(256)));
                request
            }
            10 => post(at(&format!("{}/{NO_JOB}", any(rng, &["cancel", "retry", "stream"]))), credential, ""),
            _ => HttpRequest {
                method: "DELETE",
                ..get(at(any(rng, &["run", "health", "nothing"])), credential)
            },
        }
    }
}

fn any(rng: &mut Rng, texts: &[&'static str]) -> &'static str {
    rng.pick::<&str>(texts)
}
