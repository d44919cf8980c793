//! What a lane does while it has no connection.
//!
//! Batches that were in flight have an unknown outcome, and the database may still work on one. So the lane raises the epochs
//! of its shards over a new connection, which waits for that work and forbids more; only then are these batches failed, and
//! reads allowed. Callers wait for [`PATIENCE`] at most.

use std::time::Duration;

use longshore_planted::{Bug, planted};
use longshore_store::StoreError;
use tokio::time::{Instant, sleep_until};

use super::{InFlight, Lane, LaneParts};
use crate::sessions::{LaneDatabase, LaneSession as _, RAISED_BY, ShardPlace};

/// How long batches wait for a new connection. After that they fail, and further ones fail immediately, until there is one.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a failed attempt to connect.
const PAUSE: Duration = Duration::from_millis(250);

impl<D: LaneDatabase> Lane<D> {
    /// Connects, and settles the batches of the connection before. Returns `None` when every sender is gone. `cause` is the
    /// error that broke the connection before; without one, this is the first connection.
    pub(super) async fn settle(&mut self, mut cause: Option<StoreError>) -> Option<D::Lane> {
        if let Some(cause) = &cause {
            if planted(Bug::ReloadUnderOldEpoch) {
                self.fail_in_flight(cause);
            } else {
                self.parts.is_settled.send_replace(false);
            }
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let is_first = cause.is_none();
            let error = match self.parts.connect(is_first).await {
                Ok(session) => {
                    if let Some(cause) = &cause {
                        self.fail_in_flight(cause);
                    }
                    self.parts.is_settled.send_replace(true);
                    return Some(session);
                }
                Err(error) => error,
            };
            let pause_end = Instant::now() + PAUSE;
            if Instant::now() >= deadline {
                self.fail_in_flight(&error);
                self.fail_waiting(&error);
            }
            if self.receive_until(pause_end, (Instant::now() >= deadline).then_some(&error)).await {
                return None;
            }
            cause = cause.or(Some(error));
        }
    }

    /// Fails the batches of the broken connection, whose outcome stays unknown to their senders.
    fn fail_in_flight(&mut self, cause: &StoreError) {
        self.refused.clear();
        let text = match cause {
            StoreError::Io(text) => text.clone(),
            other => other.to_string(),
        };
        let error = StoreError::Io(format!("{text}; it is not known whether this change took effect"));
        for InFlight { commit, .. } in std::mem::take(&mut self.in_flight) {
            self.fail(commit, error.clone());
        }
    }

    fn fail_waiting(&mut self, cause: &StoreError) {
        for commit in std::mem::take(&mut self.waiting) {
            self.fail(commit, cause.clone());
        }
    }

    /// Keeps the batches that arrive until `end`, or fails them with `error`. Returns whether every sender is gone.
    async fn receive_until(&mut self, end: Instant, error: Option<&StoreError>) -> bool {
        loop {
            tokio::select! {
                biased;
                () = sleep_until(end) => return self.is_closed && self.waiting.is_empty() && self.in_flight.is_empty(),
                commit = self.commits.recv(), if !self.is_closed => match (commit, error) {
                    (None, _) => self.is_closed = true,
                    (Some(commit), None) => self.waiting.push_back(commit),
                    (Some(commit), Some(error)) => self.fail(commit, error.clone()),
                },
            }
        }
    }
}

impl<D: LaneDatabase> LaneParts<D> {
    async fn connect(&self, is_first: bool) -> Result<D::Lane, StoreError> {
        let session = self.database.open_lane().await?;
        if !is_first && !planted(Bug::EpochReused) {
            self.raise_epochs(&session).await?;
        }
        Ok(session)
    }

    /// Raises the stored epochs of the lane's shards, durably, or finds that an earlier raise without an answer took effect. A
    /// shard that has another owner stays as it is: its commits are refused.
    ///
    /// # Errors
    /// That of the database; [`StoreError::Unusable`] if it has forgotten batches that it made durable.
    async fn raise_epochs(&self, session: &D::Lane) -> Result<(), StoreError> {
        let claims = self.shards.claims(|shard| self.has(shard));
        let claims: Vec<_> = claims.into_iter().map(|(shard, claim)| (shard, claim.stored)).collect();
        let places = session.raise(claims.clone()).await?;
        self.shards.check_places(&places)?;
        for (shard, stored) in claims {
            if let Some(ShardPlace { epoch, batches }) =
                places.get(&shard).filter(|place| place.epoch == stored + RAISED_BY)
            {
                self.shards.raised(shard, stored, *epoch, *batches);
            }
        }
        Ok(())
    }
}
