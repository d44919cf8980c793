//! Network volumes: directories that workers share. Each launcher puts the directories in place for its own workers.

use std::sync::Arc;

use longshore_launch::Launcher;
use longshore_model::{Endpoint, JsonRowKind, NetworkVolume, VolumeId};

use super::Catalog;
use crate::CatalogError;

const KIND: JsonRowKind = JsonRowKind::NetworkVolume;

impl Catalog {
    /// Every network volume, oldest first.
    pub fn volumes(&self) -> Vec<NetworkVolume> {
        self.resources(KIND)
    }

    /// The network volume with this id.
    pub fn volume(&self, id: &VolumeId) -> Option<NetworkVolume> {
        self.resource(KIND, id.as_str())
    }

    /// Creates a volume and its directory. Its `created_at` is set here.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unavailable`] if a launcher cannot make the directory.
    pub async fn create_volume(&self, volume: NetworkVolume) -> Result<NetworkVolume, CatalogError> {
        let _lock = self.lock().await;
        let volume = NetworkVolume { created_at: self.now(), ..volume };
        // The directory first: a directory without a volume does no harm.
        for launcher in self.launchers.values() {
            let made = launcher.make_volume(&volume.id).await;
            made.map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        }
        self.put_resource(KIND, volume.id.as_str(), &volume).await?;
        Ok(volume)
    }

    /// Changes a volume by `change` and returns it. `change` cannot set its id and `created_at`. If nothing changed,
    /// nothing is written.
    ///
    /// # Errors
    ///
    /// The error of `change`; [`CatalogError::NotFound`] for an unknown id.
    pub async fn update_volume<E: From<CatalogError>>(
        &self,
        id: &VolumeId,
        change: impl FnOnce(&mut NetworkVolume) -> Result<(), E> + Send,
    ) -> Result<NetworkVolume, E> {
        let _lock = self.lock().await;
        let before = self.volume(id).ok_or(CatalogError::NotFound)?;
        let mut volume = before.clone();
        change(&mut volume)?;
        (volume.id, volume.created_at) = (before.id, before.created_at);
        if volume == before {
            return Ok(volume);
        }
        self.put_resource(KIND, id.as_str(), &volume).await?;
        Ok(volume)
    }

    /// Deletes a volume with the files in its directory, if it is `as_expected`.
    ///
    /// # Errors
    ///
    /// - [`CatalogError::NotFound`] for an unknown id.
    /// - [`CatalogError::Changed`] if the volume is not as expected.
    /// - [`CatalogError::Conflict`] while an endpoint uses the volume.
    /// - [`CatalogError::Unavailable`] if a launcher cannot set the directory aside.
    pub async fn delete_volume(
        &self,
        id: &VolumeId,
        as_expected: impl FnOnce(&NetworkVolume) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let lock = self.lock().await;
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
            self.restore_volume(id).await;
            return Err(refused);
        }
        // Removing many files takes long, and other changes need not wait for it.
        drop(lock);
        for launcher in self.launchers.values() {
            remove_volume(&**launcher, id).await;
        }
        Ok(())
    }

    /// Sets the volume's directories aside, then deletes its row.
    async fn delete_volume_row(&self, id: &VolumeId) -> Result<(), CatalogError> {
        for launcher in self.launchers.values() {
            let aside = launcher.mark_volume_deleted(id).await;
            aside.map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        }
        self.delete_json_row(KIND, id.as_str()).await
    }

    /// Makes the directories available again after a deletion that failed.
    async fn restore_volume(&self, id: &VolumeId) {
        for launcher in self.launchers.values() {
            if let Err(error) = launcher.make_volume(id).await {
                tracing::error!(volume = %id, %error, "volume directory not restored before the next start");
            }
        }
    }

    /// Completes the deletions of volumes that an earlier server began, or undoes those whose row still exists. Called
    /// once at the start, before there are other calls.
    pub(crate) async fn recover_volumes(&self) {
        for launcher in self.launchers.values() {
            let known = self.volumes().iter().map(|volume| volume.id).collect();
            match launcher.recover_volumes(known).await {
                Ok(deleted) if deleted.is_empty() => {}
                Ok(deleted) => {
                    let launcher = Arc::clone(launcher);
                    self.services.runtime.spawn(Box::pin(async move {
                        for volume in deleted {
                            remove_volume(&*launcher, &volume).await;
                        }
                    }));
                }
                Err(error) => tracing::error!(%error, "volume directories not recovered"),
            }
        }
    }

    /// Checks that the volumes exist which an endpoint names. Those of `before` are not checked again.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] with the id of a missing volume.
    pub(crate) fn check_volumes(
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

/// Removes the directory of a deleted volume. After a failure the next start removes it.
async fn remove_volume(launcher: &dyn Launcher, id: &VolumeId) {
    if let Err(error) = launcher.remove_volume(id).await {
        tracing::warn!(volume = %id, %error, "deleted volume's directory remains until the next start");
    }
}
