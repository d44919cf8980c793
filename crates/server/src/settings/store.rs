//! The settings of the store: where rows are kept.

use std::path::Path;

use longshore_postgres::Database;

use super::{Settings, SettingsError};

/// The value of `store` for the log in the data directory.
const EMBEDDED: &str = "embedded";
/// Most bytes in flight with a database: what is in flight can become one batch, and a batch is one message to PostgreSQL,
/// which has less than 1 GiB.
const BYTES_IN_FLIGHT_MAX: usize = 750_000_000;
/// With object storage, a longer payload is not in the database: its log has every byte twice.
const DATABASE_BLOB_BYTES_MAX: usize = 64 << 10;

impl Settings {
    /// The database that keeps the rows, with its password's file; `None` for the log in the data directory.
    ///
    /// # Errors
    /// [`SettingsError::Value`] if `store` is no address of a database, or has a password.
    pub(crate) fn database(&self) -> Result<Option<Database>, SettingsError> {
        if self.store == EMBEDDED {
            return Ok(None);
        }
        let database =
            Database::parse(&self.store).map_err(|error| SettingsError::Value(error.to_string()))?;
        let password = Some(self.store_password_file.as_path()).filter(|path| !path.as_os_str().is_empty());
        Ok(Some(match password {
            Some(path) => database.with_password_file(path),
            None => database,
        }))
    }

    /// Whether rows and payloads are in a database.
    pub(crate) fn has_database(&self) -> bool {
        self.store != EMBEDDED
    }

    /// The file with certificate authorities for the database that the operator named.
    pub(crate) fn store_ca_file(&self) -> Option<&Path> {
        Some(self.store_ca_file.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Length in bytes from which a payload is a file or an object of its own. Without object storage, payloads of a database
    /// are in it, so that every computer finds them.
    pub(super) fn blob_bytes_min(&self) -> usize {
        match (self.has_database(), self.has_objects()) {
            (true, has_objects) => self.database_blob_bytes_min(has_objects),
            (false, _) => self.blob_bytes_min,
        }
    }

    /// The same for a database, also if `store` names none.
    pub(crate) fn database_blob_bytes_min(&self, has_objects: bool) -> usize {
        if has_objects { self.blob_bytes_min.min(DATABASE_BLOB_BYTES_MAX) } else { usize::MAX }
    }

    /// The same for a log in a data directory, also if `store` names a database.
    pub(crate) fn folder_blob_bytes_min(&self) -> usize {
        self.blob_bytes_min
    }

    pub(super) fn check_store(&self) -> Result<(), SettingsError> {
        if self.database()?.is_some() && self.bytes_in_flight_max > BYTES_IN_FLIGHT_MAX {
            return Err(SettingsError::Value(format!(
                "`bytes_in_flight_max` is {}; with a database in `store` it must be at most {BYTES_IN_FLIGHT_MAX}",
                self.bytes_in_flight_max
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::tests::load;

    #[test]
    fn the_store_is_a_log_or_a_database() {
        assert!(load(&[]).unwrap().database().unwrap().is_none());
        let settings = load(&[("STORE", "postgres://longshore@db.example/jobs")]).unwrap();
        assert!(settings.has_database() && settings.database().unwrap().unwrap().needs_tls());
        assert_eq!(settings.engine().blob_bytes_min, usize::MAX);
        for (value, expected) in [
            ("sqlite", "is no address of a PostgreSQL database"),
            ("postgres://longshore:hidden@db.example/jobs", "has a password"),
            ("postgres://longshore@db.example/jobs?password=hidden", "has a password"),
        ] {
            let refusal = load(&[("STORE", value)]).unwrap_err().to_string();
            assert!(refusal.contains(expected) && !refusal.contains("hidden"), "{refusal}");
            assert!(refusal.contains("store_password_file"), "{refusal}");
        }
    }

    #[test]
    fn what_is_in_flight_fits_a_message_of_the_database() {
        let much = ("BYTES_IN_FLIGHT_MAX", "750000001");
        assert!(load(&[much]).is_ok());
        let refusal = load(&[much, ("STORE", "postgres://u@localhost/d")]).unwrap_err().to_string();
        assert!(refusal.contains("at most 750000000"), "{refusal}");
    }
}
