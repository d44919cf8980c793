//! The start of an engine: claims the shards, opens the catalog, and starts the actors and supervisors.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{Endpoint, EndpointNo, Epoch, JsonRowKind, ShardId, is_reserved_slug};
use longshore_store::{Catalog as StoredCatalog, StoreError, WebhookRow, Write};

use super::{Engine, EngineInner, EngineParts, payload_place};
use crate::actor::mailbox::mailbox;
use crate::actor::request::Request;
use crate::actor::{Actor, LoadedQueue, load_queue};
use crate::bulk::BulkTasks;
use crate::catalog::json_rows::take_rows;
use crate::catalog::shard::CatalogShard;
use crate::code_paths;
use crate::drain::Drain;
use crate::endpoint_shared::EndpointShared;
use crate::failures::FailureInbox;
use crate::gpu_pool::GpuPool;
use crate::job_feed::FeedSwitch;
use crate::metering::Meter;
use crate::owner_use::OwnerUse;
use crate::payload_budget::PayloadBudget;
use crate::payload_cache::PayloadCache;
use crate::read_faults::ReadFaults;
use crate::runtime::Clock;
use crate::secrets::{self, TOKEN_KEY};
use crate::services::Services;
use crate::space::Shortage;
use crate::store_health::StoreHealth;
use crate::traces::Traces;
use crate::webhooks::WebhookHandle;
use crate::webhooks::log::WebhookLog;
use crate::webhooks::log::watched::WatchedLog;
use crate::{Catalog, EndpointHandle, Keys, Sessions};

/// The stored setting with the address that workers were last started for.
const WORKERS_URL: &str = "workers_url";
/// The pause before the loading or deletion of a queue is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl Engine {
    /// Claims all shards, reads the catalog, and starts the actors and supervisors. The queues load in the background:
    /// requests to them wait, and [`Engine::is_ready`] says when all are loaded.
    ///
    /// # Errors
    ///
    /// The error of the store. [`StoreError::Unusable`] if a stored secret cannot be decrypted with the keys of the
    /// vault.
    pub async fn start(parts: EngineParts) -> Result<Self, StoreError> {
        let shards: Vec<ShardId> = (0..ShardId::COUNT).map(ShardId).collect();
        let epochs = parts.store.claim_shards(shards.clone()).await?;
        let epochs: Vec<(ShardId, Epoch)> = shards.into_iter().zip(epochs).collect();
        let health = Arc::new(StoreHealth::default());
        let epoch = epochs[usize::from(ShardId::CATALOG.0)].1;
        let shard = CatalogShard::new(Arc::clone(&parts.store), epoch, Arc::clone(&health));
        let mut stored = parts.store.catalog().await?;
        open_secrets(&parts, &shard, &mut stored).await?;
        let token_key = token_key(&parts, &shard, &stored).await?;
        payload_place::check(&parts, &shard, &stored, &token_key).await?;
        let moved = has_moved(&shard, &stored, &parts.workers.base_url).await?;
        let (launchers, workers) = (parts.launchers.clone(), parts.workers.clone());
        let services = Arc::new(services(parts, health));
        let usage = take_rows(&mut stored, JsonRowKind::Usage);
        let owners = take_rows(&mut stored, JsonRowKind::Owner);
        let sessions = take_rows(&mut stored, JsonRowKind::ConsoleSession);
        let codes = take_rows(&mut stored, JsonRowKind::ConsoleCode);
        let bulk = take_rows(&mut stored, JsonRowKind::BulkTask);
        let keys = std::mem::take(&mut stored.keys);
        let inner = EngineInner {
            sessions: Sessions::new(Arc::clone(&services), shard.clone(), &sessions, &codes),
            bulk: BulkTasks::new(shard.clone(), &bulk),
            keys: Keys::new(Arc::clone(&services), shard.clone(), keys, &owners),
            catalog: Catalog::new(Arc::clone(&services), shard, launchers.clone(), &mut stored),
            started_at: services.clock.now(),
            services,
            not_adopted: Mutex::new(launchers.keys().map(|provider| (*provider, None)).collect()),
            launchers,
            gpu_pool: Arc::new(GpuPool::new(workers.gpus.clone(), workers.capacity)),
            meter: Meter::new(usage),
            workers,
            moved,
            fleets: Mutex::default(),
            epochs,
            committers: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            loading: Arc::new(AtomicUsize::new(stored.endpoints.len())),
            token_key: ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &token_key),
            last_tick: AtomicU64::new(0),
        };
        let engine = Self { inner: Arc::new(inner) };
        engine.open_endpoints(stored.endpoints);
        engine.resume_bulk();
        engine.start_sweep();
        engine.catalog().recover_volumes().await;
        engine.start_fleet().await;
        Ok(engine)
    }

    /// Starts the actors of the stored endpoints. A deletion that did not end before the earlier server did is
    /// continued.
    fn open_endpoints(&self, records: Vec<Endpoint>) {
        for record in records {
            let deleting = record.deleting;
            if let Some(slug) = record.slug.as_deref().filter(|slug| !deleting && is_reserved_slug(slug)) {
                tracing::warn!(
                    endpoint = %record.id,
                    slug,
                    "the slug is reserved for the management API by now: the endpoint keeps its job routes, give it another"
                );
            }
            if !deleting && !self.providers().contains(&record.provider) {
                tracing::warn!(
                    endpoint = %record.id,
                    provider = record.provider.as_str(),
                    "this server has no launcher of the endpoint's provider: the endpoint starts no workers, and takes jobs"
                );
            }
            let handle = self.open_endpoint(record, true);
            if deleting {
                let engine = self.clone();
                self.spawn(async move { engine.finish_delete(handle).await });
            } else {
                self.catalog().state_mut().put_endpoint(handle);
            }
        }
    }

    /// Starts an endpoint's actor, which loads its queue first. A `stored` endpoint counts as loading until then.
    pub(super) fn open_endpoint(&self, record: Endpoint, stored: bool) -> EndpointHandle {
        let services = Arc::clone(&self.inner.services);
        let (requests, mailbox) = mailbox(services.requests.clone());
        let committer = self.committer(ShardId::of(&record.id));
        let secrets = self.catalog().stored_secrets(&record.id);
        let shared = Arc::new_cyclic(|this| EndpointShared::new(services, record, requests, this));
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

    /// Deletes the jobs of an endpoint in slices, then its record. The catalog does not list the endpoint.
    pub(super) async fn finish_delete(&self, handle: EndpointHandle) {
        let no: EndpointNo = handle.no();
        loop {
            let (reply, done) = tokio::sync::oneshot::channel();
            if handle.shared().requests.send(Request::Delete { reply }).is_err()
                || matches!(done.await, Ok(Ok(())))
            {
                break;
            }
            tracing::warn!(endpoint = %handle.record().id, "a deletion was interrupted, trying again");
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        self.catalog().forget_webhooks(&handle.record().id).await;
        let id = handle.record().id;
        let mut writes = self.catalog().delete_versions(&id);
        writes.push(Write::DeleteEndpoint(no));
        match self.catalog().commit(writes).await {
            Ok(()) => self.catalog().state_mut().versions.remove(&id),
            Err(error) => tracing::warn!(%error, "a deleted endpoint's record remains until the next start"),
        }
    }
}

/// The services of an engine, with the tasks of webhook calls and of traces started.
fn services(parts: EngineParts, store_health: Arc<StoreHealth>) -> Services {
    let webhook_log = Arc::new(WatchedLog::new(parts.webhook_log));
    let told: Arc<dyn WebhookLog> = Arc::<WatchedLog>::clone(&webhook_log);
    let webhooks =
        WebhookHandle::spawn(parts.webhooks, parts.runtime.as_ref(), parts.webhook_transport, told);
    let traces = parts.traces.map(|export| Arc::new(Traces::start(export, parts.runtime.as_ref())));
    Services {
        traces,
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
        store_health,
        feeds: FeedSwitch::default(),
        failures: FailureInbox::default(),
        drain: Drain::default(),
        space: Shortage::default(),
        owner_use: OwnerUse::default(),
        webhooks,
        webhook_log,
        runtime: parts.runtime,
    }
}

/// Decrypts the secrets of the catalog, and names code by its hash in templates of earlier versions. Writes what
/// changed in the store by that: secrets under another key than the present one, and those templates.
///
/// # Errors
///
/// [`StoreError::Unusable`] if no key of the vault decrypts a secret. Else the error of the commit.
async fn open_secrets(
    parts: &EngineParts,
    shard: &CatalogShard,
    stored: &mut StoredCatalog,
) -> Result<(), StoreError> {
    let mut writes = secrets::open_catalog(&parts.vault, stored)?;
    if !writes.is_empty() {
        tracing::info!(records = writes.len(), "sealing secrets under the present key");
    }
    let is_here = |code: &_| parts.launchers.values().any(|launcher| launcher.finds_code(code));
    let renamed = code_paths::name_by_hash(&parts.vault, &mut stored.templates, is_here)?;
    if !renamed.is_empty() {
        tracing::info!(templates = renamed.len(), "naming deployed code by its hash");
    }
    // Of two writes of one template, the later one counts and has both changes.
    writes.extend(renamed);
    if writes.is_empty() { Ok(()) } else { shard.commit(writes).await }
}

/// Loads an endpoint's queue. Tries again after each error.
async fn load(shared: &EndpointShared) -> LoadedQueue {
    loop {
        let record = shared.record();
        match load_queue(&shared.services, &record, true).await {
            Ok(loaded) => return loaded,
            Err(error) => {
                tracing::error!(endpoint = %record.id, %error, "a queue could not be loaded, trying again");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// The secret that worker tokens are derived from. The first start of an installation generates and stores it.
async fn token_key(
    parts: &EngineParts,
    shard: &CatalogShard,
    stored: &StoredCatalog,
) -> Result<Bytes, StoreError> {
    if let Some(key) = stored.settings.get(TOKEN_KEY) {
        return Ok(key.clone());
    }
    let halves = [parts.runtime.entropy(), parts.runtime.entropy()];
    let key = Bytes::from(halves.map(u128::to_be_bytes).concat());
    let sealed = secrets::sealed_token_key(&parts.vault, &key)?;
    shard.commit(vec![Write::PutSetting(TOKEN_KEY.to_owned(), sealed)]).await?;
    Ok(key)
}

/// Whether the earlier server gave its workers another address than `url`. Stores `url` for the next start.
async fn has_moved(shard: &CatalogShard, stored: &StoredCatalog, url: &str) -> Result<bool, StoreError> {
    let before = stored.settings.get(WORKERS_URL);
    if before.is_some_and(|before| before == url) {
        return Ok(false);
    }
    shard.commit(vec![put_workers_url(url)]).await?;
    Ok(before.is_some())
}

/// The write that stores the address that workers are started for.
pub(super) fn put_workers_url(url: &str) -> Write {
    Write::PutSetting(WORKERS_URL.to_owned(), Bytes::copy_from_slice(url.as_bytes()))
}
