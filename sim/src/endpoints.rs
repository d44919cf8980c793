//! The list of endpoints that the operator publishes to clients and external workers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rng::Rng;

/// Deleted endpoints that are remembered, because some clients keep using them.
const DELETED_KEPT: usize = 3;

/// A published endpoint with its names.
#[derive(Clone)]
pub struct KnownEndpoint {
    /// The endpoint's id in addresses.
    pub id: Arc<str>,
    /// The endpoint's slug, if it has one.
    pub slug: Option<Arc<str>>,
    /// Environment variables of an external worker; `None` if the server starts the workers.
    pub external: Option<Arc<BTreeMap<String, String>>>,
}

/// The list of endpoints. Cheap to clone.
#[derive(Clone, Default)]
pub struct Endpoints {
    lists: Arc<Mutex<Lists>>,
}

#[derive(Default)]
struct Lists {
    present: Vec<KnownEndpoint>,
    deleted: Vec<KnownEndpoint>,
}

impl Endpoints {
    /// Publishes a new endpoint.
    pub fn publish(&self, endpoint: KnownEndpoint) {
        self.lists().present.push(endpoint);
    }

    /// Removes an endpoint that is deleted or about to be.
    pub fn withdraw(&self, id: &str) {
        let mut lists = self.lists();
        let Some(at) = lists.present.iter().position(|known| &*known.id == id) else { return };
        let deleted = lists.present.remove(at);
        if lists.deleted.len() == DELETED_KEPT {
            lists.deleted.remove(0);
        }
        lists.deleted.push(deleted);
    }

    /// Whether the list is empty.
    pub fn are_none(&self) -> bool {
        self.lists().present.is_empty()
    }

    /// Returns a random published endpoint.
    pub fn pick(&self, rng: &mut Rng) -> Option<KnownEndpoint> {
        let lists = self.lists();
        (!lists.present.is_empty()).then(|| rng.pick(&lists.present).clone())
    }

    /// Returns a random deleted endpoint.
    pub fn pick_deleted(&self, rng: &mut Rng) -> Option<KnownEndpoint> {
        let lists = self.lists();
        (!lists.deleted.is_empty()).then(|| rng.pick(&lists.deleted).clone())
    }

    /// Returns the published endpoints in order of creation.
    pub fn present(&self) -> Vec<KnownEndpoint> {
        self.lists().present.clone()
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
