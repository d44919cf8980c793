//! Clients submit jobs.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::client_state::UnacknowledgedSubmit;
use super::{Client, body};
use crate::endpoints::KnownEndpoint;
use crate::faults::Fault;
use crate::observation::HttpResponse;
use crate::raw_http::{post, text_member};
use crate::rng::Rng;

/// Most attempts to send a submit with an idempotency key until a response arrives.
const SENT_MAX: u32 = 6;

impl Client {
    /// Submits a job with `run` or `runsync`.
    pub(super) async fn submit(&self, sync: bool) {
        let Some(submit) = self.new_submit(sync) else { return };
        if submit.key.is_empty() {
            let answer = self.ask(post(submit.path.clone(), &self.credential, submit.body.clone())).await;
            self.note_submit(&submit, answer.as_ref());
            return;
        }
        self.state().submit_sent(submit.clone());
        for _ in 0..SENT_MAX {
            if self.send_submit(&submit).await.is_some() || self.faults().are_over() {
                return;
            }
            let pause = self.rng().skewed(1..=5_000);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Sends a recent submit again, sometimes with another body, which must be refused.
    pub(super) async fn resend(&self) {
        let submit = {
            let (mut rng, mut state) = (self.rng(), self.state());
            let changed = rng.chance(0.2);
            state.pick_submit(&mut rng).map(|submit| if changed { with_other_body(submit) } else { submit })
        };
        if let Some(submit) = submit {
            self.send_submit(&submit).await;
        }
    }

    /// Sends the submit until a response arrives; `None` if none does.
    async fn send_submit(&self, submit: &UnacknowledgedSubmit) -> Option<()> {
        let mut request = post(submit.path.clone(), &self.credential, submit.body.clone());
        request.headers.push(("idempotency-key", submit.key.clone()));
        let answer = self.ask(request).await;
        self.note_submit(submit, answer.as_ref());
        answer.map(drop)
    }

    fn note_submit(&self, submit: &UnacknowledgedSubmit, answer: Option<&HttpResponse>) {
        let Some(answer) = answer.filter(|answer| answer.status == 200) else { return };
        let Some(job) = text_member(&answer.body, "id") else { return };
        self.state().opened(job, &submit.endpoint);
    }

    /// Creates a submit. `None` without an endpoint or with too many open jobs. The key is empty for a submit that
    /// is not repeated.
    fn new_submit(&self, sync: bool) -> Option<UnacknowledgedSubmit> {
        let (mut rng, mut state) = (self.rng(), self.state());
        if state.open_len() as u64 >= self.profile.open_max {
            return None;
        }
        let endpoint = self.endpoints.pick(&mut rng)?;
        let number = state.next_submit();
        let unreadable = self.faults().inject(Fault::JobUnreadable);
        let body = body::job(&self.profile, &mut rng, self.number, number, unreadable);
        let key = rng
            .chance(self.profile.idempotency_keys)
            .then(|| format!("client {} number {number}", self.number));
        let mut path = self.base(&endpoint, &mut rng) + if sync { "/runsync" } else { "/run" };
        if sync && rng.chance(0.8) {
            // Writing into a string cannot fail.
            let _ = write!(path, "?wait={}", rng.skewed(1_000..=300_000));
        }
        Some(UnacknowledgedSubmit {
            path,
            endpoint: endpoint.id,
            key: key.unwrap_or_default(),
            body: Bytes::from(body),
        })
    }

    /// One of the addresses of an endpoint.
    pub(super) fn base(&self, endpoint: &KnownEndpoint, rng: &mut Rng) -> String {
        let name = endpoint.slug.as_ref().filter(|_| rng.chance(0.3)).unwrap_or(&endpoint.id);
        self.mount(name, rng)
    }

    /// The path of the job interface, or the one for client libraries.
    pub(super) fn mount(&self, endpoint: &str, rng: &mut Rng) -> String {
        let prefix = if rng.chance(self.profile.uses_sdk) { "/sdk/v2/" } else { "/v2/" };
        format!("{prefix}{endpoint}")
    }
}

fn with_other_body(mut submit: UnacknowledgedSubmit) -> UnacknowledgedSubmit {
    submit.body = Bytes::from_static(br#"{"input":{"other":true}}"#);
    submit
}
