//! The one connection that writes: groups of batches, each group one transaction with one sync.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use longshore_model::{Durability, Epoch, ShardId};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::ahead::Ahead;
use super::apply::apply;
use super::doubt::{Doubt, write_again};
use super::error::{corrupt, from_sqlite};
use super::open::Folder;
use super::{column, open};
use crate::{Batch, StoreError};

/// A batch and the claim under which it is written.
#[derive(Debug)]
pub(super) struct Commit {
    /// The shard that it belongs to.
    pub shard: ShardId,
    /// The epoch of its sender.
    pub epoch: Epoch,
    /// The changes.
    pub batch: Batch,
}

/// Writes. Lives on one thread.
pub(super) struct Committer {
    database: PathBuf,
    // None after an error that leaves the connection in doubt: the next transaction opens another.
    connection: Option<Writable>,
    /// The database file, to write to past `SQLite`.
    file: Arc<File>,
    doubt: Arc<Doubt>,
    // The folder is locked, so nobody else changes the rows behind this.
    epochs: HashMap<ShardId, Epoch>,
    wal_pages: Arc<AtomicU32>,
    /// See [`LogLimits::ahead_pages`](super::LogLimits::ahead_pages).
    ahead_pages: u32,
}

struct Writable {
    db: Connection,
    /// The write-ahead log, for syncing what buffered commits left in it, and for writing it again. Closing it
    /// drops no lock: `SQLite` keeps its locks on the other two files.
    wal: File,
    ahead: Ahead,
    durability: Durability,
}

impl Committer {
    /// Opens the connection and reads the epochs.
    pub fn open(folder: &Folder, ahead_pages: u32) -> Result<Self, StoreError> {
        let mut committer = Self {
            database: folder.database.clone(),
            connection: None,
            file: Arc::clone(&folder.file),
            doubt: Arc::default(),
            epochs: HashMap::new(),
            wal_pages: Arc::default(),
            ahead_pages,
        };
        let epochs =
            column::collect(&committer.connection()?.db, "SELECT no, epoch FROM shard", [], |row| {
                let key = row.get(0).map_err(|error| corrupt("shard", "?", error))?;
                let at = column::Column { table: "shard", key, row };
                Ok((ShardId(at.number(0)?), Epoch(at.unsigned(1)?)))
            })?;
        committer.epochs = epochs.into_iter().collect();
        Ok(committer)
    }

    /// Writes every batch whose epoch is current; one answer per batch, in order. A batch that cannot be written
    /// does not take the others down.
    pub fn commit(&mut self, group: &[Commit]) -> Vec<Result<(), StoreError>> {
        let mut answers: Vec<_> = group.iter().map(|commit| self.check_epoch(commit)).collect();
        let admitted: Vec<usize> = (0..group.len()).filter(|&i| answers[i].is_ok()).collect();
        let batches: Vec<&Batch> = admitted.iter().map(|&i| &group[i].batch).collect();
        match self.write(&batches) {
            Ok(()) => {}
            // The disk failed: trying each of them again would only fail more slowly.
            Err(error @ StoreError::Io(_)) => admitted.iter().for_each(|&i| answers[i] = Err(error.clone())),
            // It may be the fault of one, such as a batch too big for what is left of the disk.
            Err(_) => admitted.iter().for_each(|&i| answers[i] = self.write(&[&group[i].batch])),
        }
        answers
    }

    fn write(&mut self, batches: &[&Batch]) -> Result<(), StoreError> {
        let Some(durability) = batches.iter().map(|batch| batch.durability).max() else { return Ok(()) };
        self.transaction(durability, |db| apply(db, batches.iter().flat_map(|batch| &batch.writes)))
    }

    fn check_epoch(&self, commit: &Commit) -> Result<(), StoreError> {
        let (shard, ours, current) = (commit.shard, commit.epoch, self.epoch(commit.shard));
        if ours == current { Ok(()) } else { Err(StoreError::StaleEpoch { shard, ours, current }) }
    }

    fn epoch(&self, shard: ShardId) -> Epoch {
        self.epochs.get(&shard).copied().unwrap_or(Epoch(0))
    }

    /// Raises the epochs of these shards by one, durably; answers the new ones.
    pub fn raise_epochs(&mut self, shards: &[ShardId]) -> Result<Vec<Epoch>, StoreError> {
        let raised: Vec<_> = shards.iter().map(|&shard| (shard, Epoch(self.epoch(shard).0 + 1))).collect();
        self.transaction(Durability::Synced, |db| {
            let mut put = db.prepare_cached("INSERT OR REPLACE INTO shard (no, epoch) VALUES (?, ?)")?;
            raised.iter().try_for_each(|(shard, epoch)| put.execute((shard.0, epoch.0 as i64)).map(drop))
        })?;
        self.epochs.extend(raised.iter().copied());
        Ok(raised.into_iter().map(|(_, epoch)| epoch).collect())
    }

    /// Raises the epochs of those shards that are still owned under the given ones.
    pub fn release(&mut self, shards: &[(ShardId, Epoch)]) -> Result<(), StoreError> {
        let owned: Vec<_> = shards
            .iter()
            .filter(|(shard, epoch)| self.epoch(*shard) == *epoch)
            .map(|(shard, _)| *shard)
            .collect();
        self.raise_epochs(&owned).map(drop)
    }

    /// What whoever else writes must know.
    pub fn doubt(&self) -> &Arc<Doubt> {
        &self.doubt
    }

    /// Syncs what buffered commits wrote.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.dispel_doubt()?;
        let synced = self.connection()?.wal.sync_data();
        synced.map_err(|error| self.doubt.after(StoreError::Io(error.to_string())))
    }

    /// Pages in the write-ahead log, the checkpointed ones included, until it starts over.
    pub fn wal_pages(&self) -> u32 {
        self.wal_pages.load(Ordering::Relaxed)
    }

    /// Copies what it can from the log into the database without waiting for anybody.
    pub fn checkpoint(&mut self) -> Result<(), StoreError> {
        self.dispel_doubt()?;
        let doubt = Arc::clone(&self.doubt);
        // The background is at it: commits do not wait for that.
        let Some(_turn) = doubt.try_write_pages() else { return Ok(()) };
        let copied = super::checkpoint::passive(&self.connection()?.db);
        copied.map_err(|error| doubt.after(from_sqlite(&error)))
    }

    /// Closes the connection, which must be the last. The log goes into the database, unless that is in doubt.
    pub fn close(mut self) {
        if let Err(error) = self.dispel_doubt().and_then(|()| self.connection()?.checkpoint_on_close()) {
            tracing::error!(%error, "the write-ahead log stays as it is, the next start goes on with it");
        }
    }

    /// Nothing is built on what may be missing on disk.
    fn dispel_doubt(&mut self) -> Result<(), StoreError> {
        if !self.doubt.is_raised() {
            return Ok(());
        }
        let (doubt, file) = (Arc::clone(&self.doubt), Arc::clone(&self.file));
        let _turn = doubt.may_write_pages();
        let Writable { db, wal, .. } = self.connection()?;
        // Does nothing but count.
        let frames = db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1));
        let frames = frames.map_err(|error| from_sqlite(&error))?;
        write_again(wal, &file, frames)
            .map_err(|error| StoreError::Io(format!("an earlier failure cannot be made up for: {error}")))?;
        doubt.dispel();
        // The connection's own descriptors have yet to hear of the failure; new ones need not.
        self.connection = None;
        Ok(())
    }

    fn transaction(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        self.dispel_doubt()?;
        let frames = self.wal_pages();
        let connection = self.connection()?;
        let result = connection.transaction(durability, frames, work);
        let usable = result.is_ok() || connection.rolled_back();
        if !usable {
            self.connection = None;
        }
        result.map_err(|error| {
            let error = self.doubt.after(from_sqlite(&error));
            // What it left in the log must not come back after a crash. If this fails too, it is tried again
            // before the next commit.
            let _ = self.dispel_doubt();
            error
        })
    }

    fn connection(&mut self) -> Result<&mut Writable, StoreError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        Ok(self.connection.insert(connection))
    }

    fn connect(&self) -> Result<Writable, StoreError> {
        let sqlite = |error| from_sqlite(&error);
        let mut db = open::connect_beside(&self.database).map_err(sqlite)?;
        let pages = Arc::clone(&self.wal_pages);
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, in_log| {
            pages.store(u32::try_from(in_log).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))
        .map_err(sqlite)?;
        // The first read creates the log file.
        db.query_row("SELECT count(*) FROM shard", [], |_| Ok(())).map_err(sqlite)?;
        let wal = File::options().read(true).write(true).open(open::log_of(&self.database));
        let wal = wal.map_err(|error| StoreError::Io(error.to_string()))?;
        // `SQLite` does so too, but takes no notice of a failure.
        open::sync_folder_of(&self.database)?;
        let ahead = Ahead::new(&db, &wal, self.ahead_pages).map_err(sqlite)?;
        Ok(Writable { db, wal, ahead, durability: Durability::Synced })
    }
}

impl Writable {
    fn transaction(
        &mut self,
        durability: Durability,
        frames: u32,
        work: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        if self.durability != durability {
            let level = match durability {
                Durability::Synced => "FULL",
                // Commits are written to the log and not synced; checkpoints still are.
                Durability::Buffered => "NORMAL",
            };
            self.db.pragma_update(None, "synchronous", level)?;
            self.durability = durability;
        }
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.ahead.make_room(&self.wal, frames);
        work(&self.db)?;
        self.db.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn checkpoint_on_close(&self) -> Result<(), StoreError> {
        let changed = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        changed.map(drop).map_err(|error| from_sqlite(&error))
    }

    /// After a failed transaction: undoes what is left of it. Whether the connection can go on.
    fn rolled_back(&self) -> bool {
        self.db.is_autocommit() || self.db.execute_batch("ROLLBACK").is_ok()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use longshore_model::{EndpointNo, JobKey};
    use tempfile::TempDir;

    use super::*;
    use crate::{Payload, Write};

    const SHARD: ShardId = ShardId(1);

    fn committer() -> (Committer, Epoch, open::Folder, TempDir) {
        let dir = TempDir::new().unwrap();
        let folder = open::Folder::open(dir.path()).unwrap();
        let mut committer = Committer::open(&folder, 0).unwrap();
        let epoch = committer.raise_epochs(&[SHARD]).unwrap()[0];
        (committer, epoch, folder, dir)
    }

    fn input(epoch: Epoch, seq: u64, bytes: usize) -> Commit {
        let payload = Payload::Inline(Bytes::from(vec![b'x'; bytes]));
        let job = JobKey { endpoint: EndpointNo(1), seq };
        let batch = Batch {
            durability: Durability::Synced,
            writes: vec![Write::PutInput(job, payload), Write::DropChunks(job)],
        };
        Commit { shard: SHARD, epoch, batch }
    }

    fn inputs(committer: &mut Committer) -> i64 {
        let db = &committer.connection().unwrap().db;
        db.query_row("SELECT count(*) FROM input", [], |row| row.get(0)).unwrap()
    }

    /// Lets the file grow to this many pages only: what a full disk looks like from inside.
    fn limit_pages(committer: &mut Committer, more: i64) {
        let db = &committer.connection().unwrap().db;
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        db.pragma_update_and_check(None, "max_page_count", pages + more, |_| Ok(())).unwrap();
    }

    #[test]
    fn a_batch_too_big_for_the_disk_does_not_take_its_group_down() {
        let (mut committer, epoch, _folder, _dir) = committer();
        limit_pages(&mut committer, 20);
        let group = [input(epoch, 1, 100), input(epoch, 2, 1_000_000), input(epoch, 3, 100)];
        let answers = committer.commit(&group);
        assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
        assert!(matches!(answers[1], Err(StoreError::Full(_))), "{answers:?}");
        assert_eq!(inputs(&mut committer), 2);
    }

    #[test]
    fn commits_go_on_when_the_disk_has_room_again() {
        let (mut committer, epoch, _folder, _dir) = committer();
        limit_pages(&mut committer, 0);
        let answers = committer.commit(&[input(epoch, 1, 1_000_000)]);
        assert!(matches!(answers[0], Err(StoreError::Full(_))), "{answers:?}");
        assert_eq!(inputs(&mut committer), 0);
        limit_pages(&mut committer, 1_000);
        assert!(committer.commit(&[input(epoch, 1, 1_000_000)])[0].is_ok());
        assert_eq!(inputs(&mut committer), 1);
    }

    #[test]
    fn an_error_in_mid_batch_undoes_the_batch() {
        let (mut committer, epoch, folder, _dir) = committer();
        let saboteur = Connection::open(&folder.database).unwrap();
        saboteur.execute_batch("DROP TABLE chunk").unwrap();
        // The input is written before the missing table is met.
        let answers = committer.commit(&[input(epoch, 1, 10), input(epoch, 2, 10)]);
        assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Io(_)))), "{answers:?}");
        assert_eq!(inputs(&mut committer), 0);
    }

    #[test]
    fn a_lost_connection_is_replaced() {
        let (mut committer, epoch, _folder, _dir) = committer();
        committer.connection = None;
        assert!(committer.commit(&[input(epoch, 1, 10)])[0].is_ok());
        committer.sync().unwrap();
        assert_eq!(inputs(&mut committer), 1);
    }
}
