//! What a lane does while it has no connection.
//!
//! Batches that were in flight have an unknown outcome, and the database may still work on one. So the lane raises the epochs
//! of its shards over a new connection, which waits for that work and forbids more; only then are these batches failed, and
//! reads allowed. Callers wait for [`PATIENCE`] at most.

use std::time::Duration;

use longshore_model::ShardId;
use longshore_store::StoreError;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::Client;

use super::{InFlight, Lane, LaneParts, LaneSession};
use crate::error::store_error;
use crate::shards::Claim;

/// How long batches wait for a new connection. After that they fail, and further ones fail immediately, until there is one.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a failed attempt to connect.
const PAUSE: Duration = Duration::from_millis(250);

const RAISE: &str = "UPDATE shard SET epoch = shard.epoch + 1 FROM unnest($1::int2[], $2::int8[]) u(no, epoch) \
    WHERE shard.no = u.no AND shard.epoch = u.epoch RETURNING shard.no, shard.epoch, shard.batches";

impl Lane {
    /// Connects, and settles the batches of the connection before. Returns `None` when every sender is gone. `cause` is the
    /// error that broke the connection before; without one, this is the first connection.
    pub(super) async fn settle(&mut self, mut cause: Option<StoreError>) -> Option<LaneSession> {
        if cause.is_some() {
            self.parts.is_settled.send_replace(false);
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

impl LaneParts {
    async fn connect(&self, is_first: bool) -> Result<LaneSession, StoreError> {
        let session = LaneSession::open(&self.database).await?;
        if !is_first {
            self.raise_epochs(&session.client).await?;
        }
        Ok(session)
    }

    /// Raises the stored epochs of the lane's shards, durably. A shard that has another owner stays as it is: its commits are
    /// refused.
    async fn raise_epochs(&self, client: &Client) -> Result<(), StoreError> {
        let claims: Vec<(ShardId, Claim)> = self.shards.claims(|shard| self.has(shard));
        let numbers: Vec<i16> = claims.iter().map(|(shard, _)| i16::from(shard.0)).collect();
        let epochs: Vec<i64> = claims.iter().map(|(_, claim)| claim.stored).collect();
        let raised = async {
            client.batch_execute("SET synchronous_commit = on").await?;
            let raised = client.query(RAISE, &[&numbers, &epochs]).await?;
            client.batch_execute("SET synchronous_commit = off").await?;
            Ok(raised)
        };
        let raised = raised.await.map_err(|error| store_error(&error))?;
        for row in raised {
            let decoded = || Ok((row.try_get::<_, i16>(0)?, row.try_get(1)?, row.try_get(2)?));
            let (number, epoch, batches) = decoded().map_err(|error| store_error(&error))?;
            let shard = ShardId(u8::try_from(number).unwrap_or_default());
            self.shards.raised(shard, epoch - 1, epoch, batches);
        }
        Ok(())
    }
}
