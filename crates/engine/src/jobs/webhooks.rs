//! The webhook calls of jobs: their log, and calling receivers again.

use longshore_model::{JobId, Millis};
use longshore_queue::Refusal;
use tokio::task::JoinSet;

use super::Jobs;
use crate::actor::request::Request;
use crate::webhooks::log::{self, WebhookLog as _};
use crate::{Delivery, DeliveryState, EndpointError};

/// The number of webhook calls that are made due again concurrently, so that they share commits.
const REDELIVERIES_MAX: usize = 256;

/// The deliveries to list. A delivery must match every field that is not `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryFilter {
    /// The job whose end the deliveries report.
    pub job: Option<JobId>,
    /// The state of the deliveries.
    pub state: Option<DeliveryState>,
    /// The earliest begin of a delivery's latest attempt.
    pub since: Option<Millis>,
}

impl Jobs {
    /// Returns the logged deliveries that match the filter, the one with the latest attempt first. The log has a limit,
    /// so old deliveries are missing.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Unavailable`] if the log cannot be read.
    pub async fn deliveries(&self, filter: DeliveryFilter) -> Result<Vec<Delivery>, EndpointError> {
        let log = self.shared.services.webhook_log.read(self.shared.id).await;
        let log = log.map_err(|error| EndpointError::Unavailable(error.to_string()))?;
        let mut found = log::deliveries(&log);
        found.retain(|delivery| {
            filter.job.is_none_or(|job| delivery.job == job)
                && filter.state.is_none_or(|state| delivery.state == state)
                && filter.since.is_none_or(|since| delivery.at() >= since)
        });
        Ok(found)
    }

    /// Calls a receiver again for one end of a job, starting with the first attempt. A pending call continues as it is.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Refused`] with [`Refusal::NoSuchJob`] for an unknown id or an expired job, and with
    /// [`Refusal::WebhookNotRedeliverable`] if the job has no webhook or was retried since that end.
    pub async fn redeliver(&self, webhook_id: &str) -> Result<(), EndpointError> {
        let (job, end) =
            log::parse_webhook_id(webhook_id).ok_or(EndpointError::Refused(Refusal::NoSuchJob))?;
        self.shared.request(|reply| Request::RedeliverWebhook { job, end, reply }).await.map(drop)
    }

    /// Calls receivers again for the failed deliveries of the log, of those since `since` if it is given. Returns the
    /// number of calls, and the number of failed deliveries that cannot be repeated, because their jobs are deleted or
    /// were retried.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Unavailable`] if the log cannot be read, or a commit fails. The calls before it are pending.
    pub async fn redeliver_failed(&self, since: Option<Millis>) -> Result<(u64, u64), EndpointError> {
        let filter = DeliveryFilter { since, state: Some(DeliveryState::Failed), job: None };
        let (mut again, mut gone) = (0, 0);
        for batch in self.deliveries(filter).await?.chunks(REDELIVERIES_MAX) {
            let mut requests = JoinSet::new();
            for Delivery { id, .. } in batch {
                let (jobs, id) = (self.clone(), id.clone());
                requests.spawn(async move { jobs.redeliver(&id).await });
            }
            while let Some(result) = requests.join_next().await {
                match result {
                    Ok(Ok(())) => again += 1,
                    Ok(Err(EndpointError::Refused(_))) => gone += 1,
                    Ok(Err(error)) => return Err(error),
                    Err(error) => return Err(EndpointError::Unavailable(error.to_string())),
                }
            }
        }
        Ok((again, gone))
    }
}
