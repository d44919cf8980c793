//! What clients ask about webhooks.

use longshore_model::{JobId, Millis};
use longshore_queue::Refusal;

use tokio::task::JoinSet;

use super::EndpointHandle;
use crate::actor::request::Request;
use crate::webhooks::log;
use crate::{Delivery, DeliveryState, EndpointError};

/// Webhooks that are owed again with one commit, as far as it goes.
const REDELIVERIES_MAX: usize = 256;

/// Which deliveries to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryFilter {
    /// Of this job alone.
    pub job: Option<JobId>,
    /// That stand so.
    pub state: Option<DeliveryState>,
    /// Whose latest attempt began then or later.
    pub since: Option<Millis>,
}

impl EndpointHandle {
    /// What the log still has of the endpoint's webhooks, the one with the latest attempt first.
    pub async fn deliveries(&self, query: DeliveryFilter) -> Result<Vec<Delivery>, EndpointError> {
        let log = self.shared.services.webhook_log.read(self.record().id).await;
        let log = log.map_err(|error| EndpointError::Unavailable(error.to_string()))?;
        let mut found = log::deliveries(&log);
        found.retain(|delivery| {
            query.job.is_none_or(|job| delivery.job == job)
                && query.state.is_none_or(|state| delivery.state == state)
                && query.since.is_none_or(|since| delivery.at() >= since)
        });
        Ok(found)
    }

    /// Delivers a webhook again, from its first attempt on, however it went before. One that is on its way goes on.
    pub async fn redeliver(&self, webhook_id: &str) -> Result<(), EndpointError> {
        let (job, end) =
            log::parse_webhook_id(webhook_id).ok_or(EndpointError::Refused(Refusal::NoSuchJob))?;
        self.request(|reply| Request::RedeliverWebhook { job, end, reply }).await.map(drop)
    }

    /// Delivers again what failed since then. Answers how many, and how many of those that failed cannot be: their jobs
    /// are gone, or were retried.
    pub async fn redeliver_failed(&self, since: Option<Millis>) -> Result<(u64, u64), EndpointError> {
        let query = DeliveryFilter { since, state: Some(DeliveryState::Failed), job: None };
        let (mut again, mut gone) = (0, 0);
        for batch in self.deliveries(query).await?.chunks(REDELIVERIES_MAX) {
            let mut orders = JoinSet::new();
            for Delivery { id, .. } in batch {
                let (handle, id) = (self.clone(), id.clone());
                orders.spawn(async move { handle.redeliver(&id).await });
            }
            while let Some(order) = orders.join_next().await {
                match order {
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
