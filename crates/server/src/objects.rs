//! The object storage of the settings.

use std::fs;
use std::path::Path;

use longshore_objects::{Credentials, Place, Storage};
use longshore_trust::Roots;

use crate::settings::Settings;
use crate::startup_error::StartupError;

/// Opens the object storage that the settings name; `None` if they name none. Sends nothing.
///
/// # Errors
/// The keys or the certificate authorities cannot be used.
pub(crate) fn open(settings: &Settings) -> Result<Option<Storage>, StartupError> {
    let Some(place) = settings.blobs()? else { return Ok(None) };
    open_place(&place, &settings.blobs_credentials()?, settings.blobs_ca_file()).map(Some)
}

/// Opens object storage, and checks that objects can be written, read and deleted.
///
/// # Errors
/// What failed, and what to do.
pub(crate) async fn open_and_probe(settings: &Settings) -> Result<Option<Storage>, StartupError> {
    let storage = open(settings)?;
    if let Some(storage) = &storage {
        storage.probe().await.map_err(StartupError::Objects)?;
        tracing::info!(address = storage.address(), "large payloads and deployed code are in object storage");
    }
    Ok(storage)
}

/// Opens a place that a command names.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_place(
    place: &Place,
    credentials: &Credentials,
    ca_file: Option<&Path>,
) -> Result<Storage, StartupError> {
    let roots = Roots::load(ca_file).map_err(StartupError::ObjectAuthorities)?;
    Storage::open(place, credentials, &roots)
        .map_err(|error| StartupError::Objects(format!("{place} cannot be used: {error}")))
}

/// Fails if the data directory has large payloads, which a server with object storage would not find.
///
/// # Errors
/// It has some, or cannot be read.
pub(crate) fn expect_no_files(blobs_dir: &Path, address: &str) -> Result<(), StartupError> {
    let folders = fs::read_dir(blobs_dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files = folders
        .filter(|folder| !is_hidden(folder))
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    if files.next().is_none() {
        return Ok(());
    }
    Err(StartupError::Objects(format!(
        "{} has large payloads, and `blobs` is {address}: move them with `longshore copy --from DIR --to DIR2 --to-blobs …`, or \
         leave `blobs` empty",
        blobs_dir.display()
    )))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
