//! Rows in PostgreSQL: the [`Store`](longshore_store::Store) of installations that must survive the loss of a computer.
//!
//! ```text
//! commit ──► a lane: a task with a connection, which sends the batches of its shards in order, several in flight
//!                │ taken effect, not yet durable
//!                ▼
//!            a flusher: one more connection; what took effect before a flush begins is durable when it ends ──► replies
//! reads  ──► reader connections
//! ```
//!
//! The tables are described in `schema/0001_rows.sql`, the statement that writes a batch in `schema/0002_commit.sql`, and the one for
//! batches of what the usual lives of jobs change in `schema/0008_jobs.sql`. The database compares the epoch of the shard and the number
//! of its batches before each batch, so that neither an earlier owner nor a batch whose predecessor failed can write.
//!
//! Several servers may share a database: [`Membership`] says which of them may use the store.

mod commit_statement;
mod connect;
mod copy;
mod error;
mod exclusive;
mod flusher;
mod job_columns;
mod lane;
mod lane_sql;
mod lanes;
mod log_lines;
mod nodes;
mod old_transactions;
mod payload;
mod reader;
mod reduced;
mod schema;
mod server_check;
mod sessions;
mod shards;
mod store;
mod values;

pub use commit_statement::Columns;
pub use connect::Database;
pub use copy::{HeldLock, HeldTables, NewTables};
pub use lane_sql::{SqlFlusher, SqlLane};
pub use lanes::{LaneWriter, Settling};
pub use log_lines::{LogTable, NumberedLine};
pub use nodes::{
    DatabaseClock, Identity, IdentityTexts, IsGone, Membership, NewNode, Owned, ServingRight, SqlSession,
};
pub use old_transactions::OldTransaction;
pub use schema::{SchemaVersions, migrate_database, versions};
pub use server_check::examine::{DatabaseFinding, FindingLevel, examine};
pub use sessions::{
    BatchPlace, BatchResult, BoxTask, FlushSession, LaneDatabase, LaneSession, LockAttempt, NodeDatabase,
    NodeSession, RAISED_BY, Renewal, SeenOwner, ShardPlace, ShardPlaces, Spawn, StatementError,
};
pub use store::PostgresStore;
