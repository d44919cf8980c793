//! Payload budgets: bound the bytes of stored payloads in memory.
//!
//! A payload's budget is acquired before the payload is read, and released when the last byte is sent or dropped. Payloads
//! up to [`SMALL_BYTES`] do not count: the number of concurrent requests bounds them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::EndpointError;

/// Payloads up to this length do not count. In bytes.
pub(crate) const SMALL_BYTES: usize = 64 * 1024;

/// A budget of bytes. Clones share it.
#[derive(Clone, Debug)]
pub struct PayloadBudget {
    free: Arc<Semaphore>,
    bytes_max: usize,
}

/// A part of a [`PayloadBudget`], released when the last clone is dropped. The default is no part of any budget.
#[derive(Clone, Debug, Default)]
pub struct BudgetPermit {
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl PayloadBudget {
    /// Returns a budget of `bytes_max` bytes, between 1 and 4 GiB. A larger payload takes all of it.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self { free: Arc::new(Semaphore::new(bytes_max)), bytes_max }
    }

    /// The size of the budget, in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The bytes that are free now.
    pub(crate) fn bytes_free(&self) -> usize {
        self.free.available_permits()
    }

    /// Acquires `bytes`, or the whole budget if it is smaller. `None` if they are not free now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_many_owned(self.permits(bytes)).ok()
    }

    /// Waits for `bytes`, or for the whole budget if it is smaller, in the order of the calls. Never `None`.
    pub(crate) fn take(
        &self,
        bytes: usize,
    ) -> impl Future<Output = Option<OwnedSemaphorePermit>> + Send + use<> {
        let permit = Arc::clone(&self.free).acquire_many_owned(self.permits(bytes));
        // The semaphore is never closed.
        async move { permit.await.ok() }
    }

    fn permits(&self, bytes: usize) -> u32 {
        // `bytes_max` fits in 32 bits, so the conversion never fails.
        u32::try_from(bytes.min(self.bytes_max)).unwrap_or(u32::MAX)
    }

    /// Acquires the budget for a payload of `bytes` before it is read. Waits for at most `wait_max`.
    ///
    /// # Errors
    ///
    /// `NoRoom` if the bytes were not free in time.
    pub(crate) async fn hold(&self, bytes: usize, wait_max: Duration) -> Result<BudgetPermit, EndpointError> {
        if bytes <= SMALL_BYTES {
            return Ok(BudgetPermit::default());
        }
        if let Some(permit) = self.try_take(bytes) {
            return Ok(BudgetPermit::of(permit));
        }
        // Boxed, because most calls do not wait, and the future would reserve its size.
        match Box::pin(tokio::time::timeout(wait_max, self.take(bytes))).await {
            Ok(Some(permit)) => Ok(BudgetPermit::of(permit)),
            _ => Err(EndpointError::NoRoom),
        }
    }

    /// Returns the same bytes, which count against the budget until the last slice of them is dropped.
    ///
    /// # Errors
    ///
    /// `NoRoom` if the bytes are not free now.
    pub fn charge(&self, payload: Bytes) -> Result<Bytes, EndpointError> {
        if payload.len() <= SMALL_BYTES {
            return Ok(payload);
        }
        let permit = self.try_take(payload.len()).ok_or(EndpointError::NoRoom)?;
        Ok(BudgetPermit::of(permit).around(payload))
    }
}

impl BudgetPermit {
    /// Returns a permit that can be cloned.
    pub(crate) fn of(permit: OwnedSemaphorePermit) -> Self {
        Self { permit: Some(Arc::new(permit)) }
    }

    /// Whether the permit is no part of any budget.
    pub fn is_nothing(&self) -> bool {
        self.permit.is_none()
    }

    /// Returns the same bytes, which hold this permit until the last slice of them is dropped.
    pub fn around(&self, bytes: Bytes) -> Bytes {
        match &self.permit {
            Some(permit) => Bytes::from_owner(BudgetedBytes { bytes, _permit: Arc::clone(permit) }),
            None => bytes,
        }
    }
}

/// Bytes that hold a permit.
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

    const SHORT_WAIT: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn a_payload_counts_until_its_last_byte_is_dropped() {
        let budget = PayloadBudget::new(1_000_000);
        let payload = Bytes::from(vec![7; 600_000]);
        let sending = budget.charge(payload.clone()).unwrap();
        let rest = sending.slice(599_999..);
        assert_eq!(sending.as_ptr(), payload.as_ptr(), "the payload is not copied");
        drop(sending);
        assert!(matches!(budget.charge(payload.clone()), Err(EndpointError::NoRoom)));
        assert!(matches!(budget.hold(600_000, SHORT_WAIT).await, Err(EndpointError::NoRoom)));
        assert_eq!(
            budget.charge(payload.slice(..1_000)).unwrap().len(),
            1_000,
            "a small payload does not count"
        );
        drop(rest);
        assert!(budget.charge(payload).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn payloads_get_their_budget_in_order_and_one_larger_than_the_budget_gets_all_of_it() {
        let budget = PayloadBudget::new(1_000_000);
        let first = budget.hold(900_000, SHORT_WAIT).await.unwrap();
        let large = tokio::spawn({
            let budget = budget.clone();
            async move { budget.hold(5_000_000, Duration::from_mins(1)).await }
        });
        tokio::task::yield_now().await;
        assert!(budget.hold(100_000, SHORT_WAIT).await.is_err(), "a later payload waits for the earlier one");
        drop(first);
        let large = large.await.unwrap().unwrap();
        assert_eq!(budget.bytes_free(), 0);
        drop(large);
        assert_eq!(budget.bytes_free(), 1_000_000);
    }
}
