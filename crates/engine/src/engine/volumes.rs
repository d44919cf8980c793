//! Network volumes: directories that workers share. Each launcher puts them in place for its own workers.

use std::sync::Arc;

use longshore_launch::Launcher;
use longshore_model::{Endpoint, JsonRowKind, NetworkVolume, VolumeId};

use super::Engine;
use crate::CatalogError;

const KIND: JsonRowKind = JsonRowKind::NetworkVolume;

impl Engine {
    /// Every network volume, oldest first.
    pub fn volumes(&self) -> Vec<NetworkVolume> {
        self.typed_records(KIND)
    }

    /// One network volume.
    pub fn volume(&self, id: &VolumeId) -> Option<NetworkVolume> {
        self.typed_record(KIND, id.as_str())
    }

    /// Adds a volume and makes its directory. Its `created_at` is set here.
    pub async fn create_volume(&self, volume: NetworkVolume) -> Result<NetworkVolume, CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        let volume = NetworkVolume { created_at: self.now(), ..volume };
        // Before it is promised: a directory without a volume does no harm.
        for launcher in self.inner.launchers.values() {
            let made = launcher.make_volume(&volume.id).await;
            made.map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        }
        self.keep_typed(KIND, volume.id.as_str(), &volume).await?;
        Ok(volume)
    }

    /// Changes a volume's record by `change`; one that is refused, or leaves it as it is, writes nothing.
    pub async fn update_volume<E: From<CatalogError>>(
        &self,
        id: &VolumeId,
        change: impl FnOnce(&mut NetworkVolume) -> Result<(), E> + Send,
    ) -> Result<NetworkVolume, E> {
        let _door = self.inner.catalog_lock.lock().await;
        let before = self.volume(id).ok_or(CatalogError::NotFound)?;
        let mut volume = before.clone();
        change(&mut volume)?;
        (volume.id, volume.created_at) = (before.id, before.created_at);
        if volume == before {
            return Ok(volume);
        }
        self.keep_typed(KIND, id.as_str(), &volume).await?;
        Ok(volume)
    }

    /// Deletes a volume that is `as_expected`, with what is in its directory. Refused while an endpoint uses it, naming
    /// the endpoint.
    pub async fn delete_volume(
        &self,
        id: &VolumeId,
        as_expected: impl FnOnce(&NetworkVolume) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let door = self.inner.catalog_lock.lock().await;
        let volume = self.volume(id).ok_or(CatalogError::NotFound)?;
        if !as_expected(&volume) {
            return Err(CatalogError::Changed);
        }
        let user = self
            .endpoints()
            .into_iter()
            .find(|endpoint| endpoint.record().volumes().any(|used| used == id.as_str()));
        if let Some(user) = user {
            return Err(CatalogError::Conflict(format!(
                "network volume {id} is in use by endpoint {}: delete or change that first",
                user.record().id
            )));
        }
        if let Err(refused) = self.delete_volume_row(id).await {
            self.bring_back_volume(id).await;
            return Err(refused);
        }
        // There may be much in it: others need not wait for that.
        drop(door);
        for launcher in self.inner.launchers.values() {
            remove_volume(&**launcher, id).await;
        }
        Ok(())
    }

    /// Sets the volume's directories aside, then deletes its row.
    async fn delete_volume_row(&self, id: &VolumeId) -> Result<(), CatalogError> {
        for launcher in self.inner.launchers.values() {
            let aside = launcher.mark_volume_deleted(id).await;
            aside.map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        }
        self.forget_records(KIND, vec![id.to_string()]).await
    }

    /// Undoes a deletion that failed.
    async fn bring_back_volume(&self, id: &VolumeId) {
        for launcher in self.inner.launchers.values() {
            if let Err(error) = launcher.make_volume(id).await {
                tracing::error!(volume = %id, %error, "the directory of a volume is back at the next start only");
            }
        }
    }

    /// Goes on with deletions that an earlier server did not end, or takes them back. Before anybody asks for volumes.
    pub(super) async fn recover_volumes(&self) {
        for launcher in self.inner.launchers.values() {
            let known = self.volumes().iter().map(|volume| volume.id).collect();
            match launcher.recover_volumes(known).await {
                Ok(deleted) if deleted.is_empty() => {}
                Ok(deleted) => {
                    let launcher = Arc::clone(launcher);
                    self.spawn(async move {
                        for volume in deleted {
                            remove_volume(&*launcher, &volume).await;
                        }
                    });
                }
                Err(error) => tracing::error!(%error, "directories of volumes could not be looked through"),
            }
        }
    }

    /// Whether the volumes exist that an endpoint names; those that it named before are not asked about again.
    pub(super) fn admits_volumes(
        &self,
        endpoint: &Endpoint,
        before: Option<&Endpoint>,
    ) -> Result<(), CatalogError> {
        let is_new = |id: &&str| before.is_none_or(|before| before.volumes().all(|named| named != *id));
        let is_missing = |id: &&str| id.parse().ok().and_then(|id| self.volume(&id)).is_none();
        match endpoint.volumes().filter(is_new).find(is_missing) {
            None => Ok(()),
            Some(id) => {
                Err(CatalogError::Conflict(format!("network volume {id:?} does not exist: create it first")))
            }
        }
    }
}

async fn remove_volume(launcher: &dyn Launcher, id: &VolumeId) {
    if let Err(error) = launcher.remove_volume(id).await {
        tracing::warn!(volume = %id, %error, "the directory of a deleted volume is left over until the next start");
    }
}
