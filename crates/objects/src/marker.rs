//! The object that says whose objects are below a prefix. Two installations below one prefix would delete each other's.

use longshore_blobs::BlobError;

use crate::{ObjectError, Storage};

/// The name of the object.
const NAME: &str = "longshore.json";

/// Reads the marker, and writes it if there is none and the installation `is_new` here.
///
/// # Errors
/// Another installation has the place, or this one's marker is missing.
pub(crate) async fn claim(storage: &Storage, installation: &str, is_new: bool) -> Result<(), BlobError> {
    let own = format!("{{\"installation\":\"{installation}\"}}\n");
    let address = storage.address();
    let read = async || storage.get(NAME).await.map_err(|error| error.about(&format!("{address}/{NAME}")));
    let found = match read().await? {
        None if is_new => {
            storage
                .put(NAME, own.clone().into())
                .await
                .map_err(|error| error.about(&format!("{address}/{NAME}")))?;
            // Of two installations that start at the same time, the second one's marker stays.
            read().await?
        }
        found => found,
    };
    match found {
        Some(found) if found == own.as_bytes() => Ok(()),
        Some(_) => Err(BlobError::Place(format!(
            "{address} has the payloads of another installation (see {NAME} there): give each installation a prefix of its \
             own in `blobs`"
        ))),
        None => Err(BlobError::Place(format!(
            "{address} has no {NAME}, so that it is not where the payloads of this installation are: set `blobs` to that \
             place, or copy all objects from there with {NAME}; if only this object was lost, write it again as {}",
            own.trim()
        ))),
    }
}

/// Whether the place still has a marker, which means that its objects are there.
pub(crate) async fn is_there(storage: &Storage) -> Result<bool, ObjectError> {
    Ok(storage.get(NAME).await?.is_some())
}
