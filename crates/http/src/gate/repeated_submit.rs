//! Submits that a node sends again after it has lost an owner with them.
//!
//! A second submit of a job's id finds the first job, as long as that is stored. A node may repeat a submit for minutes, because
//! `runsync` waits that long or because the node stood still. By then the job may have ended, been seen, and been deleted: another
//! submit of it would run it again.

use longshore_engine::{EndpointError, EndpointHandle};

use super::peer::ChosenJob;
use crate::wire::api_error::ApiError;

/// Checks that the job of a repeated submit is stored, or cannot have been deleted since it was submitted.
///
/// # Errors
///
/// 503 `not_known` if the job may have been there; the error of the endpoint if it cannot say.
pub(crate) async fn check(
    endpoint: &EndpointHandle,
    chosen: ChosenJob,
    ttl_ms: Option<u32>,
) -> Result<(), ApiError> {
    let record = endpoint.record();
    let id = chosen.id;
    let kept_ms = if id.is_sync() { record.sync_result_retention_ms } else { record.result_retention_ms };
    let kept_ms = ttl_ms.map_or(kept_ms, |ttl_ms| kept_ms.min(u64::from(ttl_ms)));
    if chosen.sent_ms_ago < kept_ms {
        return Ok(());
    }
    match endpoint.jobs().status(id).await {
        Ok(_) => Ok(()),
        Err(EndpointError::Refused(_)) => {
            let text = "the node that owned the shards was lost before it answered; it is not known whether the job was there, \
                because it would be deleted by now";
            Err(ApiError::unavailable("not_known", text))
        }
        Err(error) => Err(error.into()),
    }
}
