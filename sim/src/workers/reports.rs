//! How a worker posts reports: with the SDK's retries and with faults.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::output::{OutputTag, closed};
use super::sdk::Sdk;
use crate::faults::Fault;
use crate::raw_http::post;

/// Pauses before the SDK's retries after a 5xx.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(3)];
/// Longest time between two posts of the same result, in ms.
const TWICE_AFTER_MS_MAX: u64 = 60_000;

impl Sdk {
    pub(super) async fn post_result(self: &Arc<Self>, job: &Arc<str>, body: String, is_stream: bool) {
        let path = self.env.done(job, is_stream);
        let body = Bytes::from(body);
        self.deliver(&path, &body).await;
        if self.world.faults.inject(Fault::ResultTwice) {
            self.post_later(path, body);
        }
        if self.world.faults.inject(Fault::ResultForeign)
            && let Some(foreign) = self.foreign_job()
        {
            let signature = OutputTag { job: &foreign, worker: &self.env.worker, run: self.next_run() };
            let is_failure = self.rng().chance(0.5);
            let result = if is_failure { signature.error(signature.run) } else { signature.result(10, None) };
            let result = closed(result, false);
            self.post_later(self.env.done(&foreign, false), result.into());
        }
    }

    /// Posts a chunk and waits for the response, so that chunks stay in order.
    pub(super) async fn post_chunk(self: &Arc<Self>, job: &str, chunk: &str) {
        self.wait_while_suspended().await;
        self.deliver(&self.env.stream(job), &format!(r#"{{"output":{chunk}}}"#).into()).await;
    }

    /// Posts a progress value concurrently; it may arrive after the result.
    pub(super) fn post_progress(self: &Arc<Self>, job: &str, body: String) {
        let (sdk, path) = (Arc::clone(self), self.env.done(job, false));
        self.process.spawn(async move {
            let after = sdk.rng().skewed(0..=3_000);
            sleep(Duration::from_millis(after)).await;
            sdk.deliver(&path, &body.into()).await;
        });
    }

    fn post_later(self: &Arc<Self>, path: String, body: Bytes) {
        let sdk = Arc::clone(self);
        self.process.spawn(async move {
            let after = sdk.rng().skewed(0..=TWICE_AFTER_MS_MAX);
            sleep(Duration::from_millis(after)).await;
            sdk.wait_while_suspended().await;
            sdk.deliver(&path, &body).await;
        });
    }

    async fn deliver(&self, path: &str, body: &Bytes) {
        let mut pauses = RETRY_AFTER.into_iter();
        loop {
            let status = self
                .ask(post(path.to_owned(), &self.env.token, body.clone()))
                .await
                .map(|answer| answer.status);
            let try_again = status.map_or(self.profile.retries_network_errors, |status| status >= 500);
            let Some(pause) = pauses.next().filter(|_| try_again) else { return };
            sleep(pause).await;
            self.wait_while_suspended().await;
        }
    }
}
