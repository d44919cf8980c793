//! API keys and their owners: in memory for each request's look-up, in the store for the next start.

mod owners;
mod table;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use longshore_model::{ApiKey, JsonRowKind, Owner, OwnerNo};
use longshore_store::Write;

use crate::catalog::json_rows::{StoredJson, decoded};
use crate::catalog::shard::CatalogShard;
use crate::services::Services;
use crate::tracked_key::TrackedKey;
use crate::{CatalogError, Use};
use owners::NamedOwner;
use table::KeyTable;

/// The API keys of an engine, and the owners that they name.
///
/// Reads never wait for the disk. A change is durable when its method returns, and every later look-up sees it. Changes
/// are made one after another.
///
/// Every method that returns a [`CatalogError`] returns [`CatalogError::Store`] if the change could not be made
/// durable. After an error nothing has changed. The methods document the other errors.
pub struct Keys {
    services: Arc<Services>,
    shard: CatalogShard,
    table: RwLock<KeyTable>,
    /// Held by each change from its checks until it is in `table`.
    lock: tokio::sync::Mutex<()>,
}

impl Keys {
    /// The stored keys, and the owners in the stored rows. A corrupt row of an owner is logged and left out.
    pub(crate) fn new(
        services: Arc<Services>,
        shard: CatalogShard,
        keys: Vec<ApiKey>,
        owners: &[StoredJson],
    ) -> Self {
        let mut table = KeyTable::default();
        for key in keys {
            table.owners.reserve(key.owner);
            table.put(key);
        }
        for owner in owners.iter().filter_map(|row| decoded::<Owner>(JsonRowKind::Owner, row)) {
            table.owners.put(&owner);
        }
        Self { services, shard, table: RwLock::new(table), lock: tokio::sync::Mutex::new(()) }
    }

    /// Every key, oldest first.
    pub fn list(&self) -> Vec<Arc<TrackedKey>> {
        self.table().keys().to_vec()
    }

    /// The key with this id.
    pub fn get(&self, id: &str) -> Option<Arc<TrackedKey>> {
        self.table().get(id).cloned()
    }

    /// The name of the key with this id, or the id itself of a key that is deleted.
    pub fn name_or_id(&self, id: &str) -> String {
        self.table().get(id).map_or_else(|| id.to_owned(), |key| key.name.clone())
    }

    /// The key whose text has this hash (SHA-256 in lower-case hex).
    pub fn by_hash(&self, hash: &str) -> Option<Arc<TrackedKey>> {
        self.table().by_hash(hash).cloned()
    }

    /// Inserts a key, or replaces the one with its id.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Keys`].
    pub async fn put(&self, key: ApiKey) -> Result<Arc<TrackedKey>, CatalogError> {
        let _lock = self.lock.lock().await;
        self.shard.commit(vec![Write::PutKey(Box::new(key.clone()))]).await?;
        Ok(self.table_mut().put(key))
    }

    /// Creates a key of the owner with this name. The owner is created with the first key that names it.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] if the owner is new and there are 100 000 owners.
    pub async fn create(&self, mut key: ApiKey, owner: &str) -> Result<Arc<TrackedKey>, CatalogError> {
        let _lock = self.lock.lock().await;
        let owner = self.named_owner(owner)?;
        key.owner = owner.no;
        let write = Write::PutKey(Box::new(key.clone()));
        self.shard.commit(owner.write()?.into_iter().chain([write]).collect()).await?;
        let mut table = self.table_mut();
        table.owners.add(owner);
        Ok(table.put(key))
    }

    /// Changes a key by `change`, gives it to the owner with this name, if one is given, and returns it. `change`
    /// cannot set its id, hash, owner and `created_at`. If nothing changed, nothing is written.
    ///
    /// # Errors
    ///
    /// - The error of `change`.
    /// - [`CatalogError::NotFound`] for an unknown id.
    /// - [`CatalogError::Conflict`] if the change would leave no key in force that manages everything, or none without
    ///   an expiry; also if the owner is new and there are 100 000 owners.
    pub async fn update<E: From<CatalogError>>(
        &self,
        id: &str,
        owner: Option<&str>,
        change: impl FnOnce(&mut ApiKey) -> Result<(), E> + Send,
    ) -> Result<Arc<TrackedKey>, E> {
        let _lock = self.lock.lock().await;
        let before = self.get(id).ok_or(CatalogError::NotFound)?;
        let mut key = ApiKey::clone(&before);
        change(&mut key)?;
        let owner = owner.map(|name| self.named_owner(name)).transpose()?;
        key.owner = owner.as_ref().map_or(before.owner, |owner| owner.no);
        (key.id, key.hash, key.created_at) = (before.id.clone(), before.hash.clone(), before.created_at);
        if key == **before {
            return Ok(before);
        }
        self.check_manager_remains(id, Some(&key))?;
        let write = Write::PutKey(Box::new(key.clone()));
        let new_owner = owner.as_ref().map(NamedOwner::write).transpose()?.flatten();
        let writes = new_owner.into_iter().chain([write]).collect();
        self.shard.commit(writes).await.map_err(CatalogError::from)?;
        let mut table = self.table_mut();
        if let Some(owner) = owner {
            table.owners.add(owner);
        }
        Ok(table.put(key))
    }

    /// Deletes a key, if it is `as_expected`. No look-up finds the key after this returns.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::NotFound`] for an unknown id.
    /// - [`CatalogError::Changed`] if the key is not as expected.
    /// - [`CatalogError::Conflict`] if no key in force would be left that manages everything, or none without an
    ///   expiry.
    pub async fn delete(
        &self,
        id: &str,
        as_expected: impl FnOnce(&ApiKey) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _lock = self.lock.lock().await;
        let key = self.get(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&key) {
            return Err(CatalogError::Changed);
        }
        self.check_manager_remains(id, None)?;
        self.shard.commit(vec![Write::DeleteKey(id.to_owned())]).await?;
        self.table_mut().remove(id);
        Ok(())
    }

    /// Checks that the server can still be managed after key `id` becomes `after`, or is deleted with `None`. If keys
    /// without an expiry can manage it before, one of them must remain.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the reason.
    fn check_manager_remains(&self, id: &str, after: Option<&ApiKey>) -> Result<(), CatalogError> {
        let now = self.services.clock.now();
        let manages = |key: &ApiKey| key.manages_all() && key.is_alive(now);
        let manages_for_good = |key: &ApiKey| manages(key) && key.expires_at.is_none();
        let keys = self.list();
        let others = || keys.iter().map(|key| &***key).filter(|key| key.id != id);
        let could = keys.iter().any(|key| manages(key));
        if could && !others().chain(after).any(manages) {
            return Err(CatalogError::Conflict(format!(
                "key {id} is the last one that has the scope `manage` and is in force: no key could manage this server; make \
                 another such key first"
            )));
        }
        let could_for_good = keys.iter().any(|key| manages_for_good(key));
        if could_for_good && !others().chain(after).any(manages_for_good) {
            return Err(CatalogError::Conflict(format!(
                "key {id} is the last one with the scope `manage` that never expires: no key could manage this server \
                 after the others expired; make another such key first"
            )));
        }
        Ok(())
    }

    /// Stores which keys were used since the last call, and when, in one commit. Writes nothing if no key was used.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Keys`]. The next call stores the use then.
    pub async fn note_use(&self) -> Result<(), CatalogError> {
        let _lock = self.lock.lock().await;
        let now = self.services.clock.now();
        let used = self.list().into_iter().filter_map(|key| Some((key.take_usage(now)?, key)));
        let (records, keys): (Vec<_>, Vec<_>) = used.unzip();
        if records.is_empty() {
            return Ok(());
        }
        let writes = records.iter().map(|record| Write::PutKey(Box::new(record.clone())));
        if let Err(error) = self.shard.commit(writes.collect()).await {
            for key in keys {
                key.put_usage_back();
            }
            return Err(error.into());
        }
        let mut table = self.table_mut();
        for record in records {
            table.put(record);
        }
        Ok(())
    }

    /// The name of an owner; `owner-<number>` if its row is corrupt.
    pub fn owner_name(&self, no: OwnerNo) -> Arc<str> {
        let name = self.table().owners.name(no);
        name.unwrap_or_else(|| format!("owner-{}", no.0).into())
    }

    /// What the keys of owners used since the server started: the [`BUSIEST_OWNERS`](crate::BUSIEST_OWNERS) by number,
    /// then all other owners together (`None`).
    pub fn owner_use(&self) -> Vec<(Option<OwnerNo>, Use)> {
        self.services.owner_use.snapshot()
    }

    fn named_owner(&self, name: &str) -> Result<NamedOwner, CatalogError> {
        self.table().owners.named(name, self.services.clock.now())
    }

    fn table(&self) -> RwLockReadGuard<'_, KeyTable> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, KeyTable> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}
