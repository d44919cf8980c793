//! The sweep of payloads outside of this computer: lists them in the background, tells the actors which ones are theirs,
//! and deletes those without a job.
//!
//! A crash between a payload and its row, or between a row's deletion and the payload's, leaves such orphans. An object is
//! one only if it is older than every submit that can be in flight. Before objects are deleted, a commit proves that this
//! server still owns the rows: one that was paused while another took over knows nothing of the other's jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::{RemoteBlobs, StoredBlob};
use longshore_model::EndpointNo;
use longshore_store::Write;
use tokio::sync::oneshot;

use super::{Engine, EngineInner};
use crate::actor::request::Request;

/// The age from which an object without a job is an orphan.
const ORPHAN_AGE_MS: u64 = 3_600_000;
/// The time between two sweeps. The first one is at the start.
const INTERVAL: Duration = Duration::from_hours(24);
/// The time until a sweep that failed is repeated.
const RETRY: Duration = Duration::from_mins(10);
/// The stored setting with the time of the last deletion, by the clock of the storage. No part reads it: its commit is the
/// proof that this server owns the rows.
const SWEPT_AT: &str = "payloads_swept_at";

/// What a sweep did.
#[derive(Default)]
struct Swept {
    /// The number of objects that the storage has.
    listed: u64,
    /// The number of orphans that were deleted.
    deleted: u64,
}

impl Engine {
    /// Starts the sweeps, if the payloads are outside of this computer.
    pub(super) fn start_sweep(&self) {
        if self.services().blobs.remote().is_some() {
            self.spawn(run(Arc::downgrade(&self.inner)));
        }
    }

    /// Sweeps once.
    async fn sweep(&self, remote: &dyn RemoteBlobs) -> Result<Swept, String> {
        let began_ms = remote.clock_ms().await.map_err(|error| error.to_string())?;
        let mut listing = remote.listing();
        let mut swept = Swept::default();
        while let Some(page) = listing.recv().await {
            if self.is_stopping() {
                break;
            }
            let page = page.map_err(|error| error.to_string())?;
            swept.listed += page.len() as u64;
            let mut orphans = self.orphans(page).await;
            orphans.retain(|orphan| orphan.modified_ms.saturating_add(ORPHAN_AGE_MS) < began_ms);
            if orphans.is_empty() {
                continue;
            }
            let at = Bytes::from(began_ms.to_string());
            let proof = self.catalog().commit(vec![Write::PutSetting(SWEPT_AT.to_owned(), at)]).await;
            proof.map_err(|error| error.to_string())?;
            let names: Vec<String> = orphans.into_iter().map(|orphan| orphan.name).collect();
            swept.deleted += names.len() as u64;
            remote.delete_all(names).await.map_err(|error| error.to_string())?;
        }
        Ok(swept)
    }

    /// Tells each endpoint's actor which objects are its own, and returns those that no job has.
    async fn orphans(&self, page: Vec<StoredBlob>) -> Vec<StoredBlob> {
        let mut by_endpoint: BTreeMap<EndpointNo, Vec<StoredBlob>> = BTreeMap::new();
        for blob in page {
            // An object with another name is none of the server's.
            if let Some(no) = endpoint_of(&blob.name) {
                by_endpoint.entry(no).or_default().push(blob);
            }
        }
        let handles: BTreeMap<EndpointNo, _> =
            self.catalog().endpoints().into_iter().map(|handle| (handle.no(), handle)).collect();
        let mut orphans = Vec::new();
        for (no, blobs) in by_endpoint {
            // A number is never given again. An endpoint that is not listed is deleted with all its jobs.
            let Some(handle) = handles.get(&no) else {
                orphans.extend(blobs);
                continue;
            };
            let (reply, replied) = oneshot::channel();
            let names = blobs.iter().map(|blob| blob.name.clone()).collect();
            if handle.shared().requests.send(Request::OwnBlobs { names, reply }).is_err() {
                continue;
            }
            // After an error, the next sweep asks again.
            let Ok(Ok(unowned)) = replied.await else { continue };
            orphans.extend(blobs.into_iter().filter(|blob| unowned.contains(&blob.name)));
        }
        orphans
    }
}

/// Sweeps until the engine stops or is dropped.
async fn run(engine: Weak<EngineInner>) {
    loop {
        let pause = {
            let Some(inner) = engine.upgrade() else { return };
            let engine = Engine { inner };
            if engine.is_stopping() {
                return;
            }
            let blobs = Arc::clone(&engine.services().blobs);
            let Some(remote) = blobs.remote() else { return };
            match engine.sweep(remote).await {
                Ok(Swept { listed, deleted }) => {
                    tracing::info!(listed, deleted, "payload objects listed, orphans deleted");
                    INTERVAL
                }
                Err(error) => {
                    let retry_s = RETRY.as_secs();
                    tracing::warn!(%error, retry_s, "payload objects not swept, trying again later");
                    RETRY
                }
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// The endpoint in the name of an object, which is `<endpoint no>/<job id>.<kind>`.
fn endpoint_of(name: &str) -> Option<EndpointNo> {
    let (no, file) = name.split_once('/')?;
    let job: Option<longshore_model::JobId> = file.split('.').next()?.parse().ok();
    job.and(no.parse().ok()).map(EndpointNo)
}
