//! What the webhook dispatcher reads from an endpoint, and what it reports back.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Endpoint, JobEnd, JobId, Millis};

use super::Jobs;
use crate::actor::query::View;
use crate::actor::request::Request;
use crate::traces::Traces;
use crate::webhooks::WebhookSource;
use crate::{EndpointError, JobSnapshot, WebhookOutcome};

impl WebhookSource for Jobs {
    /// An expired job is found too, because its pending call keeps its row.
    async fn status(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        self.snapshot(self.row(job, View::Stored).await?).await
    }

    async fn members(&self, job: JobId) -> Result<Bytes, EndpointError> {
        Self::members(self, job).await
    }

    async fn webhook_attempted(
        &self,
        job: JobId,
        end: JobEnd,
        attempts: u32,
        due_at: Millis,
    ) -> Result<(), EndpointError> {
        self.shared.request(|reply| Request::WebhookAttempted { job, end, attempts, due_at, reply }).await
    }

    async fn settle_webhook(&self, job: JobId, end: JobEnd) -> Result<(), EndpointError> {
        self.shared.request(|reply| Request::SettleWebhook { job, end, reply }).await
    }

    fn count_attempt(&self, outcome: WebhookOutcome) {
        let metrics = &self.shared.metrics;
        metrics.events.called(outcome);
        match outcome {
            WebhookOutcome::Delivered => metrics.activity.call_delivered(),
            WebhookOutcome::Retried => metrics.activity.call_retried(),
            WebhookOutcome::Failed => metrics.activity.call_failed(),
        }
    }

    fn endpoint(&self) -> Arc<Endpoint> {
        self.shared.record()
    }

    fn signature(&self, id: &str, now: Millis, body: &[u8]) -> Option<String> {
        self.shared.secrets().sign(id, now, body)
    }

    fn now(&self) -> Millis {
        self.shared.now()
    }

    fn may_act(&self) -> bool {
        self.shared.services.runtime.may_act()
    }

    fn traces(&self) -> Option<Arc<Traces>> {
        self.shared.services.traces.clone()
    }
}
