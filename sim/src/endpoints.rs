//! The endpoints that the operator has told the others about.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rng::Rng;

/// How many deleted endpoints are remembered: some go on asking for them.
const DELETED_KEPT: usize = 3;

/// An endpoint that the others know of.
#[derive(Clone)]
pub struct KnownEndpoint {
    /// Its id.
    pub id: Arc<str>,
    /// Its second address.
    pub slug: Option<Arc<str>>,
    /// What a worker from outside needs in its environment; none where the server starts the workers itself.
    pub external: Option<Arc<BTreeMap<String, String>>>,
}

/// The list. Cheap to clone.
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
    /// Tells of a new endpoint.
    pub fn publish(&self, endpoint: KnownEndpoint) {
        self.lists().present.push(endpoint);
    }

    /// Tells that an endpoint is deleted, or will be in a moment.
    pub fn withdraw(&self, id: &str) {
        let mut lists = self.lists();
        let Some(at) = lists.present.iter().position(|known| &*known.id == id) else { return };
        let deleted = lists.present.remove(at);
        if lists.deleted.len() == DELETED_KEPT {
            lists.deleted.remove(0);
        }
        lists.deleted.push(deleted);
    }

    /// Whether there is none.
    pub fn are_none(&self) -> bool {
        self.lists().present.is_empty()
    }

    /// One of those that should be there.
    pub fn pick(&self, rng: &mut Rng) -> Option<KnownEndpoint> {
        let lists = self.lists();
        (!lists.present.is_empty()).then(|| rng.pick(&lists.present).clone())
    }

    /// One of those that are gone.
    pub fn pick_deleted(&self, rng: &mut Rng) -> Option<KnownEndpoint> {
        let lists = self.lists();
        (!lists.deleted.is_empty()).then(|| rng.pick(&lists.deleted).clone())
    }

    /// Those that should be there, in the order of their creation.
    pub fn present(&self) -> Vec<KnownEndpoint> {
        self.lists().present.clone()
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
