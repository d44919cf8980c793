//! Counts the open connections of all listeners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of open connections. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenConnections(Arc<AtomicU64>);

/// One open connection; the drop ends it.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<AtomicU64>);

impl OpenConnections {
    /// Counts a connection until the returned value is dropped.
    pub(crate) fn open(&self) -> OpenConnection {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(&self.0))
    }

    /// The connections that are open now.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_counts_until_its_end() {
        let connections = OpenConnections::default();
        let (first, second) = (connections.open(), connections.clone().open());
        assert_eq!(connections.count(), 2);
        drop(first);
        assert_eq!(connections.count(), 1);
        drop(second);
        assert_eq!(connections.count(), 0);
    }
}
