//! Seals everything that is stored under the present key, while no server runs on the store.

use bytes::Bytes;
use longshore_blobs::Blobs;
use longshore_model::{Durability, Endpoint, Epoch, JobRow, ShardId};
use longshore_store::{Batch, BlobRef, Payload, Store, StoreError, Write};
use longshore_vault::Keyring;

use super::{no_random, open_catalog, s3_config};

/// Jobs that are read at a time.
const PAGE: usize = 1_000;

/// What was sealed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Templates, credentials and keys.
    pub records: usize,
    /// Jobs with an `s3Config`.
    pub jobs: usize,
    /// Jobs whose `s3Config` does not open under any of the keys. They stay as they are.
    pub closed_jobs: usize,
}

/// See the module. After it, the first key is the only one that anything is sealed under, but for
/// [`Resealed::closed_jobs`].
pub async fn reseal(store: &dyn Store, blobs: &dyn Blobs, vault: &Keyring) -> Result<Resealed, StoreError> {
    let shards: Vec<ShardId> = (0..ShardId::COUNT).map(ShardId).collect();
    let epochs: Vec<(ShardId, Epoch)> =
        shards.iter().copied().zip(store.claim_shards(shards.clone()).await?).collect();
    let mut stored = store.catalog().await?;
    let writes = open_catalog(vault, &mut stored)?;
    let mut done = Resealed { records: writes.len(), ..Resealed::default() };
    if !writes.is_empty() {
        commit(store, ShardId::CATALOG, &epochs, writes).await?;
    }
    for endpoint in &stored.endpoints {
        reseal_jobs(store, blobs, vault, &epochs, endpoint, &mut done).await?;
    }
    store.release_shards(epochs).await?;
    Ok(done)
}

async fn reseal_jobs(
    store: &dyn Store,
    blobs: &dyn Blobs,
    vault: &Keyring,
    epochs: &[(ShardId, Epoch)],
    endpoint: &Endpoint,
    done: &mut Resealed,
) -> Result<(), StoreError> {
    let mut after_seq = 0;
    loop {
        let page = store.jobs(endpoint.no, after_seq, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after_seq = last.key.seq;
        for job in &page {
            let Some(payload) = store.input(job.key).await? else { continue };
            let bytes = fetch(blobs, &payload).await?;
            if !s3_config::is_stale(vault, &bytes) {
                continue;
            }
            let Some(bytes) = s3_config::resealed(vault, job.id, &bytes).map_err(no_random)? else {
                done.closed_jobs += 1;
                continue;
            };
            let (input, before) = stow(blobs, job, payload, bytes, vault).await?;
            commit(store, ShardId::of(&endpoint.id), epochs, vec![Write::PutInput(job.key, input)]).await?;
            if let Some(before) = before {
                blobs.delete(&before).await.map_err(|error| StoreError::Io(error.to_string()))?;
            }
            done.jobs += 1;
        }
    }
}

/// Keeps the bytes where those before were: in the row, or in a file beside the old one, which is answered too.
async fn stow(
    blobs: &dyn Blobs,
    job: &JobRow,
    before: Payload,
    bytes: Bytes,
    vault: &Keyring,
) -> Result<(Payload, Option<String>), StoreError> {
    let Payload::Blob(old) = before else { return Ok((Payload::Inline(bytes), None)) };
    let key = vault.key_ids().into_iter().next().unwrap_or_default();
    let stem = format!("{}/{}.input.{key}", job.key.endpoint.0, job.id);
    let reference = BlobRef::new(&stem, &bytes);
    blobs.put(&reference.name, bytes).await.map_err(|error| StoreError::Io(error.to_string()))?;
    // Sealed under this key before, and damaged since: the same name.
    let stale = (old.name != reference.name).then(|| old.name.into_string());
    Ok((Payload::Blob(reference), stale))
}

async fn fetch(blobs: &dyn Blobs, payload: &Payload) -> Result<Bytes, StoreError> {
    match payload {
        Payload::Inline(bytes) => Ok(bytes.clone()),
        Payload::Blob(reference) => {
            let read = blobs.get(&reference.name).await.map_err(|error| StoreError::Io(error.to_string()))?;
            // A file that is missing is the server's business to complain about.
            Ok(read.unwrap_or_default())
        }
    }
}

async fn commit(
    store: &dyn Store,
    shard: ShardId,
    epochs: &[(ShardId, Epoch)],
    writes: Vec<Write>,
) -> Result<(), StoreError> {
    let epoch = epochs[usize::from(shard.0)].1;
    store.commit(shard, epoch, Batch { durability: Durability::Synced, writes, chain: None }).await
}
