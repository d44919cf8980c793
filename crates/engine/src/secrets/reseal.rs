//! Seals all stored secrets under the present key, while no server runs on the store.

use bytes::Bytes;
use longshore_blobs::Blobs;
use longshore_model::{Durability, Endpoint, Epoch, JobRow, ShardId};
use longshore_store::{Batch, BlobRef, Payload, Store, StoreError, Write};
use longshore_vault::Keyring;

use super::{no_random, open_catalog, s3_config};

/// Rows of one read of jobs.
const PAGE: usize = 1_000;

/// The result of [`reseal`]: how many secrets were sealed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// The number of templates, JSON rows and settings that were sealed anew.
    pub records: usize,
    /// The number of jobs whose `s3Config` was sealed anew.
    pub jobs: usize,
    /// The number of jobs whose `s3Config` opens under no key. These inputs are unchanged.
    pub closed_jobs: usize,
}

/// Seals all stored secrets under the first key of the keyring. Secrets that are sealed under it already are unchanged,
/// so a call after an error continues. Afterwards no secret is sealed under another key, except those of
/// [`Resealed::closed_jobs`]. Every change is durable on return.
///
/// # Errors
///
/// [`StoreError::Unusable`] if a secret of the catalog opens under no key; no secret was changed. Any other
/// [`StoreError`] if a read or a write failed; secrets that were sealed before the failure stay so.
pub async fn reseal(store: &dyn Store, blobs: &dyn Blobs, keyring: &Keyring) -> Result<Resealed, StoreError> {
    let shards: Vec<ShardId> = (0..ShardId::COUNT).map(ShardId).collect();
    let epochs: Vec<(ShardId, Epoch)> =
        shards.iter().copied().zip(store.claim_shards(shards.clone()).await?).collect();
    let mut stored = store.catalog().await?;
    let writes = open_catalog(keyring, &mut stored)?;
    let mut done = Resealed { records: writes.len(), ..Resealed::default() };
    if !writes.is_empty() {
        commit(store, ShardId::CATALOG, &epochs, writes).await?;
    }
    for endpoint in &stored.endpoints {
        reseal_jobs(store, blobs, keyring, &epochs, endpoint, &mut done).await?;
    }
    store.release_shards(epochs).await?;
    Ok(done)
}

/// Reseals the inputs of one endpoint's jobs and adds them to `done`.
async fn reseal_jobs(
    store: &dyn Store,
    blobs: &dyn Blobs,
    keyring: &Keyring,
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
            if !s3_config::is_stale(keyring, &bytes) {
                continue;
            }
            let Some(bytes) = s3_config::resealed(keyring, job.id, &bytes).map_err(no_random)? else {
                done.closed_jobs += 1;
                continue;
            };
            let (input, replaced) = put_input(blobs, job, payload, bytes, keyring).await?;
            commit(store, ShardId::of(&endpoint.id), epochs, vec![Write::PutInput(job.key, input)]).await?;
            if let Some(replaced) = replaced {
                blobs.delete(&replaced).await.map_err(|error| StoreError::Io(error.to_string()))?;
            }
            done.jobs += 1;
        }
    }
}

/// Returns the payload of a resealed input: inline if the old one was, else in a new file. Also returns the name of the
/// old file, to be deleted after the commit; `None` without one.
async fn put_input(
    blobs: &dyn Blobs,
    job: &JobRow,
    old: Payload,
    bytes: Bytes,
    keyring: &Keyring,
) -> Result<(Payload, Option<String>), StoreError> {
    let Payload::Blob(old) = old else { return Ok((Payload::Inline(bytes), None)) };
    let key = keyring.key_ids().into_iter().next().unwrap_or_default();
    let stem = format!("{}/{}.input.{key}", job.key.endpoint.0, job.id);
    let reference = BlobRef::new(&stem, &bytes);
    blobs.put(&reference.name, bytes).await.map_err(|error| StoreError::Io(error.to_string()))?;
    // The names are equal if the old file was sealed under this key.
    let stale = (old.name != reference.name).then(|| old.name.into_string());
    Ok((Payload::Blob(reference), stale))
}

/// Returns the bytes of a payload; empty if its file is missing.
async fn fetch(blobs: &dyn Blobs, payload: &Payload) -> Result<Bytes, StoreError> {
    match payload {
        Payload::Inline(bytes) => Ok(bytes.clone()),
        Payload::Blob(reference) => {
            let read = blobs.get(&reference.name).await.map_err(|error| StoreError::Io(error.to_string()))?;
            // A server reports the missing file when the job is taken.
            Ok(read.unwrap_or_default())
        }
    }
}

/// Commits writes to a shard, durable on return.
async fn commit(
    store: &dyn Store,
    shard: ShardId,
    epochs: &[(ShardId, Epoch)],
    writes: Vec<Write>,
) -> Result<(), StoreError> {
    let epoch = epochs[usize::from(shard.0)].1;
    store.commit(shard, epoch, Batch { durability: Durability::Synced, writes, chain: None }).await
}
