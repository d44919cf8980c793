//! Which places of a cluster do not reach each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::{Instant, sleep_until};

/// An end of the network between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The node of this number.
    Node(usize),
    /// The one database of the cluster.
    Database,
}

/// The cut ways, each with the time at which it works again. Cheap to clone.
#[derive(Clone, Default)]
pub struct Partitions {
    cut: Arc<Mutex<BTreeMap<(Place, Place), Instant>>>,
}

impl Partitions {
    /// Cuts the way from one place to another, until a time.
    pub fn cut(&self, from: Place, to: Place, until: Instant) {
        let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        let end = cut.entry((from, to)).or_insert(until);
        *end = until.max(*end);
    }

    /// Waits until the way works: what is sent is sent again until it arrives.
    pub async fn pass(&self, from: Place, to: Place) {
        while let Some(until) = self.end(from, to) {
            sleep_until(until).await;
        }
    }

    fn end(&self, from: Place, to: Place) -> Option<Instant> {
        let cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        cut.get(&(from, to)).copied().filter(|until| Instant::now() < *until)
    }
}
