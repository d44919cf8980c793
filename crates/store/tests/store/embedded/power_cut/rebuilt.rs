//! Opening what a power cut left, and what should be in it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use longshore_disk_faults::Files;
use longshore_model::EndpointNo;
use longshore_store::{EmbeddedStore, Store as _, StoreError};

use super::workload::{COUNT, ENDPOINTS, JOBS, Workload};
use crate::rows::{SHARD, claim, commit, job, key, put};

/// What is in a store.
#[derive(Clone, Debug)]
pub struct Content {
    /// How many batches it says to have.
    pub batches: u64,
    /// The shard's epoch.
    epoch: u64,
    /// All its rows but those of the epochs, as one number.
    rows: u64,
}

/// What the store should hold after each number of batches.
pub struct References(Vec<u64>);

impl References {
    pub fn new(workload: &Workload) -> Self {
        block_on(async {
            let dir = Files::default().rebuild().unwrap();
            let store = EmbeddedStore::open(dir.path()).unwrap();
            let epoch = claim(&store).await;
            let mut rows = vec![read(&store).await.unwrap().1];
            for batch in &workload.batches {
                store.commit(SHARD, epoch, batch.clone()).await.unwrap();
                rows.push(read(&store).await.unwrap().1);
            }
            Self(rows)
        })
    }

    /// Whether the content is that of a number of batches which is not smaller than the given one.
    pub fn check(&self, content: &Content, epoch: u64, batches: u64) -> Result<(), String> {
        if content.batches < batches {
            return Err(format!("batch {batches} is lost, only {} are there", content.batches));
        }
        if content.epoch < epoch {
            return Err(format!("epoch {epoch} is lost, the last is {}", content.epoch));
        }
        match self.0.get(content.batches as usize) {
            Some(&rows) if rows == content.rows => Ok(()),
            _ => Err(format!("the rows are not those of {} batches", content.batches)),
        }
    }
}

/// Rebuilds the folder, opens it as the server does, reads it, and goes on working with it.
pub fn open(files: &Files) -> Result<Content, String> {
    let dir = files.rebuild().unwrap();
    let worked = block_on(async {
        let store = EmbeddedStore::open(dir.path()).map_err(|error| format!("does not open: {error}"))?;
        let (batches, rows) = read(&store).await.map_err(|error| error.to_string())?;
        let epoch = claim(&store).await;
        commit(&store, epoch, vec![put(job(9, 1))]).await.map_err(|error| format!("no commit: {error}"))?;
        Ok(Content { batches, epoch: epoch.0 - 1, rows })
    });
    worked.map_err(|text: String| format!("{text}; files: {:?}", sizes(files)))
}

fn sizes(files: &Files) -> Vec<(&str, usize)> {
    files.files.iter().map(|(name, content)| (&**name, content.len())).collect()
}

async fn read(store: &EmbeddedStore) -> Result<(u64, u64), StoreError> {
    let catalog = store.catalog().await?;
    let batches = catalog.settings.get(COUNT).map_or("0", |count| std::str::from_utf8(count).unwrap());
    let mut hasher = DefaultHasher::new();
    let mut note = |what: &dyn std::fmt::Debug| format!("{what:?}").hash(&mut hasher);
    note(&catalog);
    note(&catalog.json_rows.iter().map(|record| record.json.clone()).collect::<Vec<_>>());
    for endpoint in 1..=ENDPOINTS as u32 {
        note(&store.jobs(EndpointNo(endpoint), 0, usize::MAX).await?);
        note(&store.webhooks(EndpointNo(endpoint)).await?);
        note(&store.counters(EndpointNo(endpoint)).await?);
        for job in (1..=JOBS).map(|seq| key(endpoint, seq)) {
            note(&store.input(job).await?);
            note(&store.outcome(job).await?);
            note(&store.attempts(job).await?);
            note(&store.stream(job).await?);
            note(&store.chunks(job, 0, usize::MAX).await?);
        }
    }
    Ok((batches.parse().unwrap(), hasher.finish()))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}
