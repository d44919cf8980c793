//! Templates, secrets, network volumes, registry credentials, webhook secrets and versions of endpoints: in memory for
//! reads, in the store for the next start.
//!
//! ```text
//!   change ──► lock ──► checks ──► commit to the store ──► state in memory ──► actors and supervisors
//!   read   ─────────────────────────────────────────────►
//! ```
//!
//! API keys are in [`Keys`](crate::Keys). Endpoints are listed here, and are created and deleted by the
//! [`Engine`](crate::Engine), because each has an actor and workers.

pub(crate) mod json_rows;
mod registry_auths;
mod secrets;
pub(crate) mod shard;
mod state;
pub(crate) mod templates;
pub(crate) mod versions;
mod volumes;
pub(crate) mod webhook_secrets;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use longshore_launch::Launchers;
use longshore_model::{JsonRowKind, Millis};
use longshore_store::{Catalog as StoredCatalog, StoreError, Write};
use tokio::sync::MutexGuard;

use crate::EndpointHandle;
use crate::services::Services;
use json_rows::take_rows;
use shard::CatalogShard;
use state::CatalogState;
use versions::Versions;

/// The resources of an engine, except endpoints and API keys.
///
/// Reads never wait for the disk. A change is durable when its method returns, and visible to reads from then on.
/// Changes are made one after another.
///
/// Every method that returns a [`CatalogError`](crate::CatalogError) returns
/// [`CatalogError::Store`](crate::CatalogError::Store) if the change could not be made durable. After an error nothing
/// has changed. The methods document the other errors.
pub struct Catalog {
    services: Arc<Services>,
    shard: CatalogShard,
    /// Put the directories of volumes in place.
    launchers: Launchers,
    state: RwLock<CatalogState>,
    /// Held by each change from its checks until it is in `state`.
    lock: tokio::sync::Mutex<()>,
}

impl Catalog {
    /// A catalog with the stored templates and JSON rows. Endpoints are added as they are opened.
    pub(crate) fn new(
        services: Arc<Services>,
        shard: CatalogShard,
        launchers: Launchers,
        stored: &mut StoredCatalog,
    ) -> Self {
        let mut state = CatalogState::new(stored.last_endpoint_no);
        for template in std::mem::take(&mut stored.templates) {
            state.put_template(Arc::new(template));
        }
        state.versions = Versions::load(take_rows(stored, JsonRowKind::EndpointVersion));
        for row in std::mem::take(&mut stored.json_rows) {
            state.json_rows.put(row.kind, row.id, row.json);
        }
        Self { services, shard, launchers, state: RwLock::new(state), lock: tokio::sync::Mutex::new(()) }
    }

    /// The endpoint with this id or slug.
    pub(crate) fn endpoint(&self, id_or_slug: &str) -> Option<EndpointHandle> {
        self.state().endpoint(id_or_slug).cloned()
    }

    /// Every endpoint that is not deleted, oldest first.
    pub(crate) fn endpoints(&self) -> Vec<EndpointHandle> {
        self.state().endpoints().cloned().collect()
    }

    /// Waits until no change is being made. Hold the guard while making one.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().await
    }

    /// Commits a change of the catalog.
    ///
    /// # Errors
    ///
    /// As [`CatalogShard::commit`].
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.shard.commit(writes).await
    }

    /// The state in memory, for reading.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, CatalogState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state in memory, for a change that is durable.
    pub(crate) fn state_mut(&self) -> RwLockWriteGuard<'_, CatalogState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Millis {
        self.services.clock.now()
    }
}
