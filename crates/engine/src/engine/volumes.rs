//! Network volumes: directories that workers share. The launcher makes them.

use longshore_model::{Endpoint, NetworkVolume, RecordKind, VolumeId};

use super::Engine;
use crate::CatalogError;

const KIND: RecordKind = RecordKind::NetworkVolume;

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
        let _door = self.inner.door.lock().await;
        let volume = NetworkVolume { created_at: self.now(), ..volume };
        // Before it is promised: a directory without a volume does no harm.
        if let Some(launcher) = &self.inner.launcher {
            let made = launcher.make_volume(&volume.id).await;
            made.map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        }
        self.keep_typed(KIND, volume.id.as_str(), &volume).await?;
        Ok(volume)
    }

    /// Changes a volume's record by `change`.
    pub async fn update_volume(
        &self,
        id: &VolumeId,
        change: impl FnOnce(&mut NetworkVolume) + Send,
    ) -> Result<NetworkVolume, CatalogError> {
        let _door = self.inner.door.lock().await;
        let before = self.volume(id).ok_or(CatalogError::NotFound)?;
        let mut volume = before.clone();
        change(&mut volume);
        (volume.id, volume.created_at) = (before.id, before.created_at);
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
        let _door = self.inner.door.lock().await;
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
        self.forget_records(KIND, vec![id.to_string()]).await?;
        if let Some(launcher) = &self.inner.launcher
            && let Err(error) = launcher.remove_volume(id).await
        {
            tracing::warn!(volume = %id, %error, "the directory of a deleted volume is left over");
        }
        Ok(())
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
