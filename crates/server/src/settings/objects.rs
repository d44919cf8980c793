//! The settings of object storage.

use std::path::Path;

use longshore_objects::{Credentials, Place};

use super::{Settings, SettingsError};

impl Settings {
    /// Where large payloads and deployed code are, if not in the data directory.
    ///
    /// # Errors
    /// [`SettingsError::Value`] if `blobs` is no address, or has credentials.
    pub(crate) fn blobs(&self) -> Result<Option<Place>, SettingsError> {
        if !self.has_objects() {
            return Ok(None);
        }
        let place = Place::parse(&self.blobs);
        place.map(Some).map_err(|what| SettingsError::Value(format!("the setting `blobs` {what}")))
    }

    /// The keys for object storage that the operator's file has; none without a file.
    ///
    /// # Errors
    /// [`SettingsError::Value`] if the file cannot be used.
    pub(crate) fn blobs_credentials(&self) -> Result<Credentials, SettingsError> {
        match named(&self.blobs_credentials_file) {
            None => Ok(Credentials::default()),
            Some(path) => Credentials::read(path).map_err(SettingsError::Value),
        }
    }

    /// The file with certificate authorities for object storage that the operator named.
    pub(crate) fn blobs_ca_file(&self) -> Option<&Path> {
        named(&self.blobs_ca_file)
    }

    /// Whether payloads and code are in object storage.
    pub(super) fn has_objects(&self) -> bool {
        !self.blobs.is_empty()
    }

    pub(super) fn check_blobs(&self) -> Result<(), SettingsError> {
        self.blobs().map(drop)
    }
}

fn named(path: &Path) -> Option<&Path> {
    (!path.as_os_str().is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use crate::settings::tests::load;

    #[test]
    fn an_address_without_secrets_is_accepted() {
        assert!(load(&[]).unwrap().blobs().unwrap().is_none());
        let place =
            load(&[("BLOBS", "s3://jobs/prod?region=eu-central-1")]).unwrap().blobs().unwrap().unwrap();
        assert_eq!(place.to_string(), "s3://jobs/prod");
        for (value, expected) in [
            ("jobs", "`blobs` is no address"),
            ("s3://key:hidden@jobs", "`blobs` has credentials"),
            ("s3://jobs?secret=hidden", "`blobs` has `secret` behind its `?`"),
        ] {
            let refusal = load(&[("BLOBS", value)]).unwrap_err().to_string();
            assert!(refusal.contains(expected) && !refusal.contains("hidden"), "{refusal}");
        }
    }

    #[test]
    fn a_database_with_object_storage_keeps_payloads_up_to_64_kib() {
        let store = ("STORE", "postgres://u@localhost/d");
        let blobs = ("BLOBS", "s3://jobs");
        assert_eq!(load(&[store, blobs]).unwrap().engine().blob_bytes_min, 65_536);
        assert_eq!(load(&[store, blobs, ("BLOB_BYTES_MIN", "1000")]).unwrap().engine().blob_bytes_min, 1_000);
        assert_eq!(load(&[store]).unwrap().engine().blob_bytes_min, usize::MAX);
        assert_eq!(load(&[blobs]).unwrap().engine().blob_bytes_min, 262_144);
    }
}
