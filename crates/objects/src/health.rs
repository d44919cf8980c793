//! How the calls of a storage went: when one last succeeded, and when one last failed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use longshore_blobs::RemoteHealth;

use crate::ObjectError;

/// The outcomes of calls since the start.
#[derive(Debug, Default)]
pub(crate) struct Health {
    last_success_ms: AtomicU64,
    last_failure_ms: AtomicU64,
    failures: AtomicU64,
}

impl Health {
    /// Notes the outcome of a call that ends now. A storage that says that there is no such object has answered.
    pub(crate) fn note<T>(&self, outcome: Result<T, ObjectError>) -> Result<T, ObjectError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        if let Ok(_) | Err(ObjectError::NotFound(_)) = &outcome {
            self.last_success_ms.store(now_ms, Ordering::Relaxed);
        } else {
            self.last_failure_ms.store(now_ms, Ordering::Relaxed);
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    pub(crate) fn read(&self) -> RemoteHealth {
        RemoteHealth {
            last_success_ms: self.last_success_ms.load(Ordering::Relaxed),
            last_failure_ms: self.last_failure_ms.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_there_is_nothing_is_a_success() {
        let health = Health::default();
        assert_eq!(health.read(), RemoteHealth::default());
        let missing = health.note::<()>(Err(ObjectError::NotFound("x".to_owned())));
        assert!(missing.is_err() && health.read().last_success_ms > 0 && health.read().failures == 0);
        let failed = health.note::<()>(Err(ObjectError::Failed("x".to_owned())));
        assert!(failed.is_err() && health.read().last_failure_ms > 0 && health.read().failures == 1);
    }
}
