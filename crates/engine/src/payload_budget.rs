//! Memory for stored payloads that are on their way to somebody: bounded, whoever asks for however many.
//!
//! What a payload takes is taken before it is read, and given back when its last byte has left or nobody wants it any
//! more. Small ones are not counted: the number of requests at once bounds those.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::EndpointError;

/// Payloads up to this size, in bytes, are not counted.
pub(crate) const SMALL_BYTES: usize = 64 * 1024;

/// Room for a number of bytes. Cheap to clone; the clones are one.
#[derive(Clone, Debug)]
pub struct PayloadBudget {
    free: Arc<Semaphore>,
    bytes_max: usize,
}

/// A part of a room, until its last clone is dropped.
#[derive(Clone, Debug, Default)]
pub struct BudgetPermit {
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl PayloadBudget {
    /// Room for so many bytes. Something larger takes all of it.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self { free: Arc::new(Semaphore::new(bytes_max)), bytes_max }
    }

    /// How many bytes it has room for when it is empty.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// How many bytes there is room for now.
    pub(crate) fn bytes_free(&self) -> usize {
        self.free.available_permits()
    }

    /// Takes so many bytes of it now, or nothing.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_many_owned(self.permits(bytes)).ok()
    }

    /// Takes so many bytes of it, in turn.
    pub(crate) fn take(
        &self,
        bytes: usize,
    ) -> impl Future<Output = Option<OwnedSemaphorePermit>> + Send + use<> {
        let turn = Arc::clone(&self.free).acquire_many_owned(self.permits(bytes));
        async move { turn.await.ok() }
    }

    fn permits(&self, bytes: usize) -> u32 {
        // In bounds: so is `bytes_max`.
        u32::try_from(bytes.min(self.bytes_max)).unwrap_or(u32::MAX)
    }

    /// Room for a payload that is about to be read; waits for it at most so long.
    pub(crate) async fn hold(&self, bytes: usize, patience: Duration) -> Result<BudgetPermit, EndpointError> {
        if bytes <= SMALL_BYTES {
            return Ok(BudgetPermit::default());
        }
        if let Some(permit) = self.try_take(bytes) {
            return Ok(BudgetPermit::of(permit));
        }
        // Boxed, as most find room.
        match Box::pin(tokio::time::timeout(patience, self.take(bytes))).await {
            Ok(Some(permit)) => Ok(BudgetPermit::of(permit)),
            _ => Err(EndpointError::NoRoom),
        }
    }

    /// The payload, counted until its last byte is let go of; refused if there is no room now.
    pub fn charge(&self, payload: Bytes) -> Result<Bytes, EndpointError> {
        if payload.len() <= SMALL_BYTES {
            return Ok(payload);
        }
        let permit = self.try_take(payload.len()).ok_or(EndpointError::NoRoom)?;
        Ok(BudgetPermit::of(permit).around(payload))
    }
}

impl BudgetPermit {
    pub(crate) fn of(permit: OwnedSemaphorePermit) -> Self {
        Self { permit: Some(Arc::new(permit)) }
    }

    /// Whether it is no part of anything.
    pub fn is_nothing(&self) -> bool {
        self.permit.is_none()
    }

    /// The bytes, with this part of the room held until the last of them is let go of.
    pub fn around(&self, bytes: Bytes) -> Bytes {
        match &self.permit {
            Some(permit) => Bytes::from_owner(BudgetedBytes { bytes, _permit: Arc::clone(permit) }),
            None => bytes,
        }
    }
}

/// Bytes and their part of a room.
struct BudgetedBytes {
    bytes: Bytes,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn what_is_being_sent_counts_until_its_last_byte_is_let_go() {
        let room = PayloadBudget::new(1_000_000);
        let payload = Bytes::from(vec![7; 600_000]);
        let sending = room.charge(payload.clone()).unwrap();
        let rest = sending.slice(599_999..);
        assert_eq!(sending.as_ptr(), payload.as_ptr(), "it is not copied");
        drop(sending);
        assert!(matches!(room.charge(payload.clone()), Err(EndpointError::NoRoom)));
        assert!(matches!(room.hold(600_000, SOON).await, Err(EndpointError::NoRoom)));
        assert_eq!(room.charge(payload.slice(..1_000)).unwrap().len(), 1_000, "small ones always pass");
        drop(rest);
        assert!(room.charge(payload).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_room_in_turn_also_for_more_than_there_is() {
        let room = PayloadBudget::new(1_000_000);
        let first = room.hold(900_000, SOON).await.unwrap();
        let large = tokio::spawn({
            let room = room.clone();
            async move { room.hold(5_000_000, Duration::from_mins(1)).await }
        });
        tokio::task::yield_now().await;
        assert!(room.hold(100_000, SOON).await.is_err(), "nobody is overtaken");
        drop(first);
        let large = large.await.unwrap().unwrap();
        assert_eq!(room.bytes_free(), 0);
        drop(large);
        assert_eq!(room.bytes_free(), 1_000_000);
    }
}
