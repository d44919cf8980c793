//! Whether the payloads are where they were at the last start.
//!
//! Rows name payloads, and do not say where these are. A server that looked elsewhere would find none of them. So a
//! setting of the installation names the place, and the place names the installation.

use bytes::Bytes;
use longshore_blobs::{BlobError, RemoteBlobs};
use longshore_store::{Catalog, PAYLOADS_AT, StoreError, Write};
use longshore_vault::Keyring;
use ring::hmac;

use super::EngineParts;
use crate::catalog::shard::CatalogShard;
use crate::secrets::{self, TOKEN_KEY};

/// Compares the place of the payloads with the stored one, and stores it at the first start there.
///
/// # Errors
/// [`StoreError::Unusable`] if the payloads are elsewhere, and if the place is another installation's. Else the error of the
/// commit.
pub(super) async fn check(
    parts: &EngineParts,
    shard: &CatalogShard,
    stored: &Catalog,
    token_key: &[u8],
) -> Result<(), StoreError> {
    let before = stored.settings.get(PAYLOADS_AT).map(|place| String::from_utf8_lossy(place));
    let Some(remote) = parts.blobs.remote() else {
        return match before {
            None => Ok(()),
            Some(before) => Err(StoreError::Unusable(format!(
                "the payloads of this installation are in {before}: set `blobs` to it"
            ))),
        };
    };
    let address = remote.address();
    let is_same = before.as_deref().is_some_and(|before| before == address);
    match claim(remote, &fingerprint(token_key), before.is_none()).await {
        // Jobs without large payloads go on while the place is away, also when another node takes over.
        Err(StoreError::Io(error)) if is_same => {
            tracing::warn!(%address, %error, "the place of payloads does not answer, starting without it");
        }
        claimed => claimed?,
    }
    if is_same {
        return Ok(());
    }
    if let Some(before) = before {
        tracing::warn!(%before, %address, "payloads moved to another place");
    }
    let place = Bytes::copy_from_slice(address.as_bytes());
    shard.commit(vec![Write::PutSetting(PAYLOADS_AT.to_owned(), place)]).await
}

/// Notes in a place that its payloads are those of the installation with this catalog.
///
/// # Errors
/// As [`Engine::start`](crate::Engine::start).
pub async fn claim_payloads(
    remote: &dyn RemoteBlobs,
    vault: &Keyring,
    catalog: &Catalog,
) -> Result<(), StoreError> {
    // The first start of an installation makes the key.
    let Some(mut token_key) = catalog.settings.get(TOKEN_KEY).cloned() else { return Ok(()) };
    secrets::open_token_key(vault, &mut token_key)?;
    claim(remote, &fingerprint(&token_key), true).await
}

async fn claim(remote: &dyn RemoteBlobs, installation: &str, is_new: bool) -> Result<(), StoreError> {
    remote.claim(installation, is_new).await.map_err(|error| match error {
        BlobError::Place(text) => StoreError::Unusable(text),
        error => StoreError::Io(error.to_string()),
    })
}

/// The installation in an object that others can read, which does not tell its secret.
fn fingerprint(token_key: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token_key);
    const_hex::encode(&hmac::sign(&key, b"payloads:").as_ref()[..16])
}
