-- Servers that share the database. One of them owns all shards; the others wait to take over.

CREATE SEQUENCE node_id AS int4;

-- One row for each start of a server: an id is never used again. The server is alive until `until`, by the clock of the
-- database, and moves that time forward every second. `is_dead` is final: the server has left, or another one has declared it
-- dead. `lock_pid` is the database's process that holds the lock for it, if it owns the shards.
CREATE TABLE node (
    id int4 PRIMARY KEY DEFAULT nextval('node_id'), name text NOT NULL, address text NOT NULL, version text NOT NULL,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp(), until timestamptz NOT NULL,
    is_dead bool NOT NULL DEFAULT false, lock_pid int4
) WITH (fillfactor = 10);

-- One row: which cluster this is, and which of its nodes owns the shards. `secret` is what nodes know of each other by, and
-- `canary` a text that every node must be able to decrypt; both are sealed if the servers have a key for that. `epoch` counts
-- the owners.
CREATE TABLE cluster (
    only_row bool PRIMARY KEY DEFAULT true CHECK (only_row), id text NOT NULL, secret text NOT NULL, canary text NOT NULL,
    owner int4, epoch int8 NOT NULL DEFAULT 0
);
