//! The tables, and the changes of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_model::{Epoch, ShardId};
use longshore_postgres::ShardPlace;
use longshore_store::{Batch, MemoryStore, Store as _, Write};

use crate::store::ready;

/// The epoch of all shards in the rows, whose fence the table of shards is.
const ROWS_EPOCH: Epoch = Epoch(1);

/// The tables of the database.
pub(super) struct Tables {
    pub(super) rows: Arc<MemoryStore>,
    pub(super) shards: BTreeMap<ShardId, ShardPlace>,
    pub(super) nodes: BTreeMap<i32, NodeRow>,
    /// The row of the cluster: the node that owns the shards, and the number of owners so far.
    pub(super) owner: Option<i32>,
    pub(super) owners: i64,
}

/// The row of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeRow {
    pub(super) address: String,
    /// The end of its lease, by the clock of the database, in ms.
    pub(super) until_ms: u64,
    pub(super) is_dead: bool,
    /// The session that took the lock for it.
    pub(super) lock_session: Option<i32>,
}

/// One change, which takes effect completely or not at all.
#[derive(Clone)]
pub(super) enum TableChange {
    /// A batch, after which its shard is at this place.
    Batch { shard: ShardId, place: ShardPlace, writes: Arc<Vec<Write>>, is_buffered: bool },
    /// Places of shards, without a batch.
    Places(Vec<(ShardId, ShardPlace)>),
    /// A row of a node.
    Node(i32, NodeRow),
    /// The row of the cluster.
    Owner(i32, i64),
}

impl TableChange {
    /// Whether its sender does not wait for the disk.
    pub(super) fn is_buffered(&self) -> bool {
        matches!(self, Self::Batch { is_buffered: true, .. })
    }
}

impl Default for Tables {
    fn default() -> Self {
        let rows = MemoryStore::new();
        let shards = (0..ShardId::COUNT).map(ShardId).collect();
        // A memory store refuses no claim.
        let _ = ready(rows.claim_shards(shards));
        Self { rows: Arc::new(rows), shards: BTreeMap::new(), nodes: BTreeMap::new(), owner: None, owners: 0 }
    }
}

/// Copies the rows, too.
impl Clone for Tables {
    fn clone(&self) -> Self {
        Self {
            rows: Arc::new(MemoryStore::clone(&self.rows)),
            shards: self.shards.clone(),
            nodes: self.nodes.clone(),
            owner: self.owner,
            owners: self.owners,
        }
    }
}

impl Tables {
    pub(super) fn apply(&mut self, change: &TableChange) {
        match change {
            TableChange::Batch { shard, place, writes, .. } => {
                let batch = Batch { writes: Vec::clone(writes), ..Batch::default() };
                // The epoch of the rows never changes.
                let _ = ready(self.rows.commit(*shard, ROWS_EPOCH, batch));
                self.shards.insert(*shard, *place);
            }
            TableChange::Places(places) => self.shards.extend(places.iter().copied()),
            TableChange::Node(id, row) => drop(self.nodes.insert(*id, row.clone())),
            TableChange::Owner(id, owners) => (self.owner, self.owners) = (Some(*id), *owners),
        }
    }
}
