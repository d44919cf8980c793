//! Opening what a power cut left, and what should be in it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use longshore_disk_faults::Files;
use longshore_store::{EmbeddedStore, Store as _};
use rusqlite::Connection;

use super::workload::{COUNT, Workload};
use crate::rows::{SHARD, claim, commit, job, put};

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
            let mut rows = vec![read(dir.path(), &store).await.unwrap().rows];
            for batch in &workload.batches {
                store.commit(SHARD, epoch, batch.clone()).await.unwrap();
                rows.push(read(dir.path(), &store).await.unwrap().rows);
            }
            Self(rows)
        })
    }

    /// Whether the content is all of some number of batches, and at least of so many.
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
        let content = read(dir.path(), &store).await?;
        let epoch = claim(&store).await;
        commit(&store, epoch, vec![put(job(9, 1))]).await.map_err(|error| format!("no commit: {error}"))?;
        Ok(content)
    });
    worked.map_err(|text: String| format!("{text}; files: {:?}", sizes(files)))
}

fn sizes(files: &Files) -> Vec<(&str, usize)> {
    files.files.iter().map(|(name, content)| (&**name, content.len())).collect()
}

async fn read(dir: &Path, store: &EmbeddedStore) -> Result<Content, String> {
    let catalog = store.catalog().await.map_err(|error| error.to_string())?;
    let batches = catalog.settings.get(COUNT).map_or("0", |count| std::str::from_utf8(count).unwrap());
    let database = Connection::open(dir.join("longshore.db")).unwrap();
    let damage: String =
        database.query_row("PRAGMA quick_check", [], |row| row.get(0)).map_err(|error| error.to_string())?;
    if damage != "ok" {
        return Err(format!("the database is damaged: {damage}"));
    }
    let (epoch, rows) = rows(&database).map_err(|error| error.to_string())?;
    Ok(Content { batches: batches.parse().unwrap(), epoch, rows })
}

/// The shard's epoch, and all other rows as one number.
fn rows(database: &Connection) -> rusqlite::Result<(u64, u64)> {
    let list = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let tables: Vec<String> =
        database.prepare(list)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut hasher = DefaultHasher::new();
    let mut epoch = 0;
    for table in tables {
        let mut statement = database.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if table == "shard" {
                epoch = row.get::<_, i64>(1)? as u64;
                continue;
            }
            table.hash(&mut hasher);
            for column in 0..columns {
                format!("{:?}", row.get_ref(column)?).hash(&mut hasher);
            }
        }
    }
    Ok((epoch, hasher.finish()))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}
