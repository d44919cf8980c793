//! The disk format: everything that is in the data folder's `longshore.db`.
//!
//! The file is an ordinary `SQLite` database; `sqlite3 longshore.db` shows it, also while the server runs. Numbers
//! that have a meaning (job states) are those of the model crate. Times are milliseconds since the Unix epoch, 0 for
//! "not yet". Unsigned 64-bit numbers are kept as the signed number with the same bits.
//!
//! A job's row key is one integer: the endpoint's number in the upper bits, 40 bits of sequence in the lower.
//! It only grows within an endpoint, which keeps the index append-mostly; random keys cost four times as much.
//! What belongs to a job is kept under the same key, so that removing a job is six point deletes and no scan.
//!
//! | table | key | one row for |
//! |---|---|---|
//! | `job` | `key` | a job: state, policy, counts and times |
//! | `input` | `job` | its input: the members of the submitted object without the outer braces |
//! | `outcome` | `job` | its output (or latest progress) and error, once there is one |
//! | `stream` | `job` | a job that streams: where its chunks stand |
//! | `chunk` | `job`, `no` | a chunk of a stream |
//! | `hook` | `job` | a webhook call that is owed |
//! | `counters` | `endpoint_no` | an endpoint's cumulative counts and reserved sequence numbers |
//! | `endpoint` | `no` | an endpoint, as the JSON of the management API |
//! | `template` | `id` | a template, likewise; contains secrets |
//! | `api_key` | `id` | a key, likewise; holds the hash, not the secret |
//! | `setting` | `name` | a setting of the installation |
//! | `record` | `kind`, `id` | a small record, likewise (kinds have the numbers of the model crate); may contain secrets |
//! | `shard` | `no` | a shard's epoch: how often it changed hands |
//! | `installation` | — | the largest endpoint number ever given out |
//!
//! A payload is either in its row (`body`, `output`) or in a file of the blob folder (`…_blob` names it,
//! `…_blob_bytes` is its length). The view `job_readable` shows jobs with their public ids and names of states.
//!
//! # Changing the format
//!
//! `PRAGMA application_id` marks the file as ours and `PRAGMA user_version` is the format's version. A change raises
//! [`FORMAT_VERSION`] and adds the step from the version before it to [`UPGRADES`]; what older versions wrote stays
//! readable for ever, and no column or number changes its meaning.

/// Marks a database file as ours: "LSHR".
pub(super) const APPLICATION_ID: i32 = 0x4c53_4852;

/// The version of the format that this program writes.
pub(super) const FORMAT_VERSION: i32 = 2;

/// `UPGRADES[n]` turns a file of version `n` into one of version `n + 1`; version 0 is the empty file.
pub(super) const UPGRADES: [&str; FORMAT_VERSION as usize] = [VERSION_1, VERSION_2];

const VERSION_2: &str = "
-- The hidden rowid keeps the order of creation.
CREATE TABLE record (kind INTEGER NOT NULL, id TEXT NOT NULL, json BLOB NOT NULL, UNIQUE (kind, id));
";

const VERSION_1: &str = "
CREATE TABLE job (
    key                  INTEGER PRIMARY KEY,
    id                   BLOB    NOT NULL,  -- the UUID's 16 bytes
    sync                 INTEGER NOT NULL,  -- submitted through /runsync
    state                INTEGER NOT NULL,  -- 0 IN_QUEUE, 1 IN_PROGRESS, 2 COMPLETED, 3 FAILED, 4 CANCELLED, 5 TIMED_OUT
    low_priority         INTEGER NOT NULL,
    fresh                INTEGER NOT NULL,
    pinned               INTEGER NOT NULL,
    webhook              INTEGER NOT NULL,
    webhook_owed         INTEGER NOT NULL,
    retries              INTEGER NOT NULL,
    redeliveries         INTEGER NOT NULL,
    attempt              INTEGER NOT NULL,
    queue_order          INTEGER NOT NULL,  -- lower goes first
    created_at           INTEGER NOT NULL,
    enqueued_at          INTEGER NOT NULL,
    started_at           INTEGER NOT NULL,
    finished_at          INTEGER NOT NULL,
    delete_at            INTEGER NOT NULL,
    ttl_ms               INTEGER NOT NULL,
    execution_timeout_ms INTEGER NOT NULL,
    input_bytes          INTEGER NOT NULL,
    worker               TEXT,
    idempotency_key      TEXT,
    fingerprint          BLOB               -- with idempotency_key: 16 bytes of the body's SHA-256
);

CREATE TABLE input (
    job             INTEGER PRIMARY KEY,
    body            BLOB,
    body_blob       TEXT,
    body_blob_bytes INTEGER
);

CREATE TABLE outcome (
    job               INTEGER PRIMARY KEY,
    output            BLOB,
    output_blob       TEXT,
    output_blob_bytes INTEGER,
    error             TEXT
);

CREATE TABLE stream (
    job     INTEGER PRIMARY KEY,
    next    INTEGER NOT NULL,  -- the offset that the next chunk gets
    drained INTEGER NOT NULL   -- chunks below it were drained
);

CREATE TABLE chunk (
    job   INTEGER NOT NULL,
    no    INTEGER NOT NULL,
    bytes BLOB    NOT NULL,
    PRIMARY KEY (job, no)
) WITHOUT ROWID;

CREATE TABLE hook (
    job      INTEGER PRIMARY KEY,
    attempts INTEGER NOT NULL,
    due_at   INTEGER NOT NULL
);

CREATE TABLE counters (
    endpoint_no  INTEGER PRIMARY KEY,
    completed    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    retried      INTEGER NOT NULL,
    cancelled    INTEGER NOT NULL,
    reserved_seq     INTEGER NOT NULL,
    purged_until INTEGER NOT NULL
);

CREATE TABLE endpoint (no INTEGER PRIMARY KEY, record TEXT NOT NULL);

-- The hidden rowid keeps the order of creation.
CREATE TABLE template (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
CREATE TABLE api_key (id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
CREATE TABLE setting (name TEXT NOT NULL UNIQUE, value BLOB NOT NULL);

CREATE TABLE shard (no INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);

CREATE TABLE installation (
    only_row         INTEGER PRIMARY KEY CHECK (only_row = 1),
    last_endpoint_no INTEGER NOT NULL
);
INSERT INTO installation VALUES (1, 0);

CREATE VIEW job_readable AS
WITH text AS (SELECT *, lower(hex(id)) AS hex FROM job)
SELECT
    key >> 40 AS endpoint_no,
    key & 0xffffffffff AS seq,
    iif(sync, 'sync-', '') || substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-' || substr(hex, 13, 4)
        || '-' || substr(hex, 17, 4) || '-' || substr(hex, 21) AS id,
    CASE state
        WHEN 0 THEN 'IN_QUEUE' WHEN 1 THEN 'IN_PROGRESS' WHEN 2 THEN 'COMPLETED'
        WHEN 3 THEN 'FAILED' WHEN 4 THEN 'CANCELLED' WHEN 5 THEN 'TIMED_OUT'
    END AS state,
    attempt, retries, worker, created_at, started_at, finished_at, delete_at, input_bytes
FROM text;
";
