//! From parts to a running engine.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{Durability, Endpoint, EndpointNo, Epoch, JsonRowKind, ShardId, is_reserved_slug};
use longshore_store::{Batch, Catalog as StoredCatalog, Store, StoreError, WebhookRow, Write};

use super::{Engine, EngineInner, EngineParts};
use crate::actor::mailbox::mailbox;
use crate::actor::request::Request;
use crate::actor::{Actor, LoadedQueue, load_queue};
use crate::catalog::Catalog;
use crate::code_paths;
use crate::endpoint_shared::{EndpointShared, Services};
use crate::gpu_pool::GpuPool;
use crate::metering::Meter;
use crate::owner_use::OwnerUse;
use crate::payload_budget::PayloadBudget;
use crate::payload_cache::PayloadCache;
use crate::read_faults::ReadFaults;
use crate::runtime::Clock;
use crate::secrets::{self, TOKEN_KEY};
use crate::webhooks::WebhookHandle;
use crate::{EndpointHandle, StoredJson};

/// The name under which the address that workers were last started for is stored.
const WORKERS_URL: &str = "workers_url";
/// How long to wait before a queue that could not be loaded, or removed, is tried again.
const LOAD_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Claims the shards, reads the catalog and starts the endpoints. Their queues load in the background;
    /// what is asked of them meanwhile waits. [`Engine::is_ready`] tells when all are loaded.
    pub async fn start(parts: EngineParts) -> Result<Self, StoreError> {
        let store = &parts.store;
        let shards: Vec<ShardId> = (0..ShardId::COUNT).map(ShardId).collect();
        let epochs = store.claim_shards(shards.clone()).await?;
        let epochs: Vec<(ShardId, Epoch)> = shards.into_iter().zip(epochs).collect();
        let mut stored = store.catalog().await?;
        let mut writes = secrets::open_catalog(&parts.vault, &mut stored)?;
        if !writes.is_empty() {
            tracing::info!(records = writes.len(), "sealing secrets under the present key");
        }
        let is_here = |code: &_| parts.launchers.values().any(|launcher| launcher.finds_code(code));
        let renamed = code_paths::name_by_hash(&parts.vault, &mut stored.templates, is_here)?;
        if !renamed.is_empty() {
            tracing::info!(templates = renamed.len(), "naming deployed code by its hash");
        }
        // The later one of two of a template counts, and says both.
        writes.extend(renamed);
        if !writes.is_empty() {
            let batch = Batch { durability: Durability::Synced, writes, chain: None };
            store.commit(ShardId::CATALOG, epochs[0].1, batch).await?;
        }
        let token_key = token_key(&parts, &stored, epochs[0].1).await?;
        let moved = has_moved(store.as_ref(), &stored, epochs[0].1, &parts.workers.base_url).await?;
        let ground = Arc::new(Services {
            store: parts.store,
            blobs: parts.blobs,
            clock: Clock::new(Arc::clone(&parts.runtime)),
            payload_cache: PayloadCache::new(parts.settings.recent_bytes_max),
            read_faults: ReadFaults::default(),
            answers: PayloadBudget::new(parts.settings.answer_bytes_max),
            inputs: PayloadBudget::new(parts.settings.input_bytes_max),
            requests: PayloadBudget::new(parts.settings.request_bytes_max),
            settings: parts.settings,
            vault: parts.vault,
            metrics: Arc::default(),
            owner_use: OwnerUse::default(),
            webhooks: WebhookHandle::spawn(
                parts.webhooks,
                parts.runtime.as_ref(),
                parts.webhook_transport,
                Arc::clone(&parts.webhook_log),
            ),
            webhook_log: parts.webhook_log,
            runtime: parts.runtime,
        });
        let inner = EngineInner {
            services: ground,
            launchers: parts.launchers,
            gpu_pool: Arc::new(GpuPool::new(parts.workers.gpus.clone())),
            meter: Meter::new(usage_records(&mut stored)),
            workers: parts.workers,
            moved,
            fleets: Mutex::default(),
            catalog: RwLock::new(Catalog::default()),
            catalog_lock: tokio::sync::Mutex::new(()),
            epochs,
            committers: Mutex::default(),
            loading: Arc::new(AtomicUsize::new(stored.endpoints.len())),
            token_key: ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &token_key),
            last_tick: AtomicU64::new(0),
        };
        let engine = Self { inner: Arc::new(inner) };
        engine.open(stored);
        engine.recover_volumes().await;
        engine.start_fleet().await;
        Ok(engine)
    }

    fn open(&self, stored: StoredCatalog) {
        {
            let mut catalog = self.catalog_mut();
            catalog.last_endpoint_no = stored.last_endpoint_no;
            stored.templates.into_iter().for_each(|template| catalog.put_template(Arc::new(template)));
            for key in stored.keys {
                catalog.put_key(key);
            }
            stored.json_rows.into_iter().for_each(|row| catalog.json_rows.put(row.kind, row.id, row.json));
        }
        self.open_owners();
        for record in stored.endpoints {
            let deleting = record.deleting;
            if let Some(slug) = record.slug.as_deref().filter(|slug| !deleting && is_reserved_slug(slug)) {
                tracing::warn!(
                    endpoint = %record.id,
                    slug,
                    "the slug is reserved for the management API by now: the endpoint keeps its job routes, give it another"
                );
            }
            let handle = self.open_endpoint(record, true);
            if deleting {
                // Its deletion did not end before the server did.
                let engine = self.clone();
                self.spawn(async move { engine.finish_delete(handle).await });
            } else {
                self.catalog_mut().put_endpoint(handle);
            }
        }
    }

    /// Starts an endpoint's actor. One that was `stored` loads its queue first, and counts as loading until then.
    pub(super) fn open_endpoint(&self, record: Endpoint, stored: bool) -> EndpointHandle {
        let ground = Arc::clone(&self.inner.services);
        let (requests, mailbox) = mailbox(ground.requests.clone());
        let committer = self.committer(ShardId::of(&record.id));
        let secrets = self.kept_secrets(&record.id);
        let shared = Arc::new(EndpointShared::new(ground, record, requests));
        shared.set_secrets(secrets);
        let handle = EndpointHandle::new(Arc::clone(&shared));
        let loading = stored.then(|| Arc::clone(&self.inner.loading));
        self.spawn(async move {
            let loaded = load(&shared).await;
            // Set once, here.
            let _ = shared.loaded.set(());
            if let Some(loading) = loading {
                loading.fetch_sub(1, Ordering::AcqRel);
            }
            let LoadedQueue { queue, owed, blobs } = loaded;
            for (hook, job, end) in owed {
                let WebhookRow { job: key, attempts, due_at } = hook;
                shared.enqueue_webhook(job, key, end, attempts, due_at);
            }
            Actor::new(shared, queue, blobs, mailbox, committer).run().await;
        });
        handle
    }

    /// Commits changes of the catalog.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let batch = Batch { durability: Durability::Synced, writes, chain: None };
        let shard = ShardId::CATALOG;
        self.inner.services.store.commit(shard, self.epoch(shard), batch).await
    }

    /// Removes an endpoint's jobs in slices, then its record. The endpoint is not in the catalog any more.
    pub(super) async fn finish_delete(&self, handle: EndpointHandle) {
        let no: EndpointNo = handle.record().no;
        loop {
            let (reply, done) = tokio::sync::oneshot::channel();
            if handle.shared.requests.send(Request::Delete { reply }).is_err()
                || matches!(done.await, Ok(Ok(())))
            {
                break;
            }
            tracing::warn!(endpoint = %handle.record().id, "a deletion was interrupted, trying again");
            tokio::time::sleep(LOAD_PAUSE).await;
        }
        self.forget_webhooks(&handle.record().id).await;
        if let Err(error) = self.commit(vec![Write::DeleteEndpoint(no)]).await {
            tracing::warn!(%error, "a deleted endpoint's record remains until the next start");
        }
    }
}

/// The records of worker time, which the meter keeps in its own form.
fn usage_records(stored: &mut StoredCatalog) -> Vec<StoredJson> {
    let (usage, others) =
        std::mem::take(&mut stored.json_rows).into_iter().partition(|row| row.kind == JsonRowKind::Usage);
    stored.json_rows = others;
    usage.into_iter().map(|row| StoredJson { id: row.id, json: row.json }).collect()
}

/// Loads an endpoint's queue, however often it takes.
async fn load(shared: &EndpointShared) -> LoadedQueue {
    loop {
        let record = shared.record();
        match load_queue(&shared.services, &record, true).await {
            Ok(loaded) => return loaded,
            Err(error) => {
                tracing::error!(endpoint = %record.id, %error, "a queue could not be loaded, trying again");
                tokio::time::sleep(LOAD_PAUSE).await;
            }
        }
    }
}

/// The secret that worker tokens are derived from; made at the first start.
async fn token_key(parts: &EngineParts, stored: &StoredCatalog, epoch: Epoch) -> Result<Bytes, StoreError> {
    if let Some(key) = stored.settings.get(TOKEN_KEY) {
        return Ok(key.clone());
    }
    let halves = [parts.runtime.entropy(), parts.runtime.entropy()];
    let key = Bytes::from(halves.map(u128::to_be_bytes).concat());
    let kept = secrets::sealed_token_key(&parts.vault, &key)?;
    put_setting(parts.store.as_ref(), epoch, TOKEN_KEY, kept).await?;
    Ok(key)
}

/// Whether workers are told another address now than by the server before; notes the present one.
async fn has_moved(
    store: &dyn Store,
    stored: &StoredCatalog,
    epoch: Epoch,
    url: &str,
) -> Result<bool, StoreError> {
    let before = stored.settings.get(WORKERS_URL);
    if before.is_some_and(|before| before == url) {
        return Ok(false);
    }
    put_setting(store, epoch, WORKERS_URL, Bytes::copy_from_slice(url.as_bytes())).await?;
    Ok(before.is_some())
}

async fn put_setting(store: &dyn Store, epoch: Epoch, name: &str, value: Bytes) -> Result<(), StoreError> {
    let writes = vec![Write::PutSetting(name.to_owned(), value)];
    store.commit(ShardId::CATALOG, epoch, Batch { durability: Durability::Synced, writes, chain: None }).await
}
