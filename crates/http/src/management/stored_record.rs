//! The methods of the engine's catalog for records that endpoints share, under one name each: a template, a secret, a network
//! volume, a registry's credentials.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use longshore_engine::{CatalogError, Engine};
use longshore_model::{
    Millis, NetworkVolume, RegistryAuth, RegistryAuthId, Secret, SecretName, SharedWith, Template,
    TemplateId, VolumeId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::api_error::ApiError;

/// A record that the engine's catalog stores by id.
pub(super) trait StoredRecord: Serialize + DeserializeOwned + Send + Sync + Sized + 'static {
    /// The record's id, as paths have it.
    type Id: FromStr + Display + Serialize + Clone + Send + Sync + 'static;

    /// The record's id.
    fn id(&self) -> Self::Id;
    /// The time of the record's creation.
    fn created_at(&self) -> Millis;
    /// The endpoints that the record is shared with.
    fn endpoints(&self) -> &SharedWith;

    /// Returns every stored record, oldest first.
    fn list(engine: &Engine) -> Vec<Arc<Self>>;
    /// Returns the stored record with this id.
    fn find(engine: &Engine, id: Self::Id) -> Option<Arc<Self>>;
    /// Stores a new record.
    fn create(self, engine: &Engine) -> impl Future<Output = Result<Arc<Self>, CatalogError>> + Send;
    /// Changes the stored record by `change`, for the key with the id `by`. A change that is refused stores nothing.
    fn update(
        engine: &Engine,
        id: Self::Id,
        by: &str,
        change: impl FnOnce(&mut Self) -> Result<(), ApiError> + Send,
    ) -> impl Future<Output = Result<Arc<Self>, ApiError>> + Send;
    /// Deletes the stored record if it is `as_expected`.
    fn delete(
        engine: &Engine,
        id: Self::Id,
        as_expected: impl FnOnce(&Self) -> bool + Send,
    ) -> impl Future<Output = Result<(), CatalogError>> + Send;
}

/// Implements [`StoredRecord`] with the methods of the engine's catalog. `$update($by: $arg)` says whether the method for
/// changes takes the id of the key.
macro_rules! stored_record {
    ($record:ty, $id:ty, $field:ident, $list:ident, $find:ident, $create:ident, $update:ident($by:ident: $($arg:ident)?), $delete:ident) => {
        impl StoredRecord for $record {
            type Id = $id;

            fn id(&self) -> $id {
                self.$field.clone()
            }

            fn created_at(&self) -> Millis {
                self.created_at
            }

            fn endpoints(&self) -> &SharedWith {
                &self.endpoints
            }

            fn list(engine: &Engine) -> Vec<Arc<Self>> {
                engine.catalog().$list().into_iter().map(Arc::from).collect()
            }

            fn find(engine: &Engine, id: $id) -> Option<Arc<Self>> {
                engine.catalog().$find(&id).map(Arc::from)
            }

            async fn create(self, engine: &Engine) -> Result<Arc<Self>, CatalogError> {
                engine.catalog().$create(self).await.map(Arc::from)
            }

            async fn update(
                engine: &Engine,
                id: $id,
                $by: &str,
                change: impl FnOnce(&mut Self) -> Result<(), ApiError> + Send,
            ) -> Result<Arc<Self>, ApiError> {
                engine.catalog().$update(&id, $($arg,)? change).await.map(Arc::from)
            }

            async fn delete(
                engine: &Engine,
                id: $id,
                as_expected: impl FnOnce(&Self) -> bool + Send,
            ) -> Result<(), CatalogError> {
                engine.catalog().$delete(&id, as_expected).await
            }
        }
    };
}

stored_record!(
    Template,
    TemplateId,
    id,
    templates,
    template,
    create_template,
    update_template(by: by),
    delete_template
);
stored_record!(NetworkVolume, VolumeId, id, volumes, volume, create_volume, update_volume(_by: ), delete_volume);
stored_record!(Secret, SecretName, name, secrets, secret, create_secret, update_secret(by: by), delete_secret);
stored_record!(
    RegistryAuth,
    RegistryAuthId,
    id,
    registry_auths,
    registry_auth,
    create_registry_auth,
    update_registry_auth(_by: ),
    delete_registry_auth
);
