//! When the certificate of the listeners ends, which their TLS says and `/v1/server` and the metrics show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longshore_model::Millis;

/// The end of the certificate in use. Clones show the same one.
#[derive(Clone, Debug, Default)]
pub struct CertificateEnd(Arc<AtomicU64>);

impl CertificateEnd {
    /// When the certificate ends; `None` if that is unknown.
    pub(crate) fn get(&self) -> Option<Millis> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at > 0).map(Millis)
    }

    /// Replaces it, for a new certificate.
    pub(crate) fn set(&self, ends_at: Option<Millis>) {
        self.0.store(ends_at.map_or(0, |at| at.0), Ordering::Relaxed);
    }
}
