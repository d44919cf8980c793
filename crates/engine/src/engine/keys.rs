//! Changes of keys, and the notes of their use.

use std::sync::Arc;

use longshore_model::ApiKey;
use longshore_store::Write;

use super::Engine;
use crate::CatalogError;
use crate::tracked_key::TrackedKey;

impl Engine {
    /// Every key, oldest first.
    pub fn keys(&self) -> Vec<Arc<TrackedKey>> {
        self.catalog().keys().to_vec()
    }

    /// One key.
    pub fn key(&self, id: &str) -> Option<Arc<TrackedKey>> {
        self.catalog().key(id).cloned()
    }

    /// The key whose text has this hash (lower-case hex SHA-256).
    pub fn key_by_hash(&self, hash: &str) -> Option<Arc<TrackedKey>> {
        self.catalog().key_by_hash(hash).cloned()
    }

    /// Inserts or replaces a key.
    pub async fn put_key(&self, key: ApiKey) -> Result<Arc<TrackedKey>, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        self.commit(vec![Write::PutKey(Box::new(key.clone()))]).await?;
        Ok(self.catalog_mut().put_key(key))
    }

    /// Adds a key of the owner with this name, who is known from then on.
    pub async fn create_key(&self, mut key: ApiKey, owner: &str) -> Result<Arc<TrackedKey>, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let owner = self.owner_named(owner)?;
        key.owner = owner.no;
        let write = Write::PutKey(Box::new(key.clone()));
        self.commit(Self::owner_write(&owner)?.into_iter().chain([write]).collect()).await?;
        self.know_owner(&owner);
        Ok(self.catalog_mut().put_key(key))
    }

    /// Changes a key by `change`, and gives it to the owner with this name, if any. Refused where nobody could manage the server any more.
    pub async fn update_key<E: From<CatalogError>>(
        &self,
        id: &str,
        owner: Option<&str>,
        change: impl FnOnce(&mut ApiKey) -> Result<(), E> + Send,
    ) -> Result<Arc<TrackedKey>, E> {
        let _door = self.inner.catalog_lock.lock().await;
        let before = self.key(id).ok_or(CatalogError::NotFound)?;
        let mut key = ApiKey::clone(&before);
        change(&mut key)?;
        let owner = owner.map(|name| self.owner_named(name)).transpose()?;
        key.owner = owner.as_ref().map_or(before.owner, |owner| owner.no);
        (key.id, key.hash, key.created_at) = (before.id.clone(), before.hash.clone(), before.created_at);
        if key == **before {
            return Ok(before);
        }
        self.keeps_a_manager(id, Some(&key))?;
        let write = Write::PutKey(Box::new(key.clone()));
        let new_owner = owner.as_ref().map(Self::owner_write).transpose()?.flatten();
        self.commit(new_owner.into_iter().chain([write]).collect()).await.map_err(CatalogError::from)?;
        if let Some(owner) = &owner {
            self.know_owner(owner);
        }
        Ok(self.catalog_mut().put_key(key))
    }

    /// Removes a key: from the answer on it is refused. Refused where nobody could manage the server any more.
    pub async fn delete_key(&self, id: &str) -> Result<(), CatalogError> {
        self.delete_key_if(id, |_| true).await
    }

    /// As [`Engine::delete_key`], if it is `as_expected`.
    pub async fn delete_key_if(
        &self,
        id: &str,
        as_expected: impl FnOnce(&ApiKey) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let key = self.key(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&key) {
            return Err(CatalogError::Changed);
        }
        self.keeps_a_manager(id, None)?;
        self.commit(vec![Write::DeleteKey(id.to_owned())]).await?;
        self.catalog_mut().remove_key(id);
        Ok(())
    }

    /// Whether somebody can manage the server when key `id` is `after` (none: gone): now, and for good if that was
    /// so before.
    fn keeps_a_manager(&self, id: &str, after: Option<&ApiKey>) -> Result<(), CatalogError> {
        let now = self.now();
        let manages = |key: &ApiKey| key.manages_all() && key.is_alive(now);
        let manages_for_good = |key: &ApiKey| manages(key) && key.expires_at.is_none();
        let keys = self.keys();
        let others = || keys.iter().map(|key| &***key).filter(|key| key.id != id);
        let could = keys.iter().any(|key| manages(key));
        if could && !others().chain(after).any(manages) {
            return Err(CatalogError::Conflict(format!(
                "key {id} is the last one that has the scope `manage` and is in force: nobody could manage this server \
                 any more; make another such key first"
            )));
        }
        let could_for_good = keys.iter().any(|key| manages_for_good(key));
        if could_for_good && !others().chain(after).any(manages_for_good) {
            return Err(CatalogError::Conflict(format!(
                "key {id} is the last one with the scope `manage` that never expires: nobody could manage this server \
                 after the others' end; make another such key first"
            )));
        }
        Ok(())
    }

    /// Writes down which keys were used since the last time, all in one commit; nothing if none was.
    pub async fn note_key_use(&self) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let now = self.now();
        let used = self.keys().into_iter().filter_map(|key| Some((key.take_usage(now)?, key)));
        let (records, keys): (Vec<_>, Vec<_>) = used.unzip();
        if records.is_empty() {
            return Ok(());
        }
        let writes = records.iter().map(|record| Write::PutKey(Box::new(record.clone())));
        if let Err(error) = self.commit(writes.collect()).await {
            for key in keys {
                key.put_usage_back();
            }
            return Err(error.into());
        }
        let mut catalog = self.catalog_mut();
        for record in records {
            catalog.put_key(record);
        }
        Ok(())
    }
}
