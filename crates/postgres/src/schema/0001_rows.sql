-- Rows of queues, and of what is not a job. Numbers that exceed 63 bits are stored with their bits as they are.
--
-- A job's key is its endpoint's number and its sequence number. As one argument of a function, it is the endpoint's number
-- times 2^40 plus the sequence number.

CREATE FUNCTION job_endpoint(key int8) RETURNS int4 LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (key >> 40)::int4;

CREATE FUNCTION job_seq(key int8) RETURNS int8 LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key & 1099511627775;

-- One row for each shard that was ever claimed. `epoch` counts its owners; `batches` counts its committed batches, so that a
-- batch takes effect only directly after the one before it.
CREATE TABLE shard (no int2 PRIMARY KEY, epoch int8 NOT NULL, batches int8 NOT NULL) WITH (fillfactor = 10);

-- `row` is the packed row without its key, as in the embedded store's records of kind 1; null if only payloads are stored.
-- `input` and `outcome`: see `payload.rs`.
CREATE TABLE job (
    endpoint int4 NOT NULL, seq int8 NOT NULL, row bytea, input bytea, outcome bytea, PRIMARY KEY (endpoint, seq)
) PARTITION BY HASH (endpoint);
ALTER TABLE job ALTER COLUMN input SET STORAGE EXTERNAL;
ALTER TABLE job ALTER COLUMN outcome SET STORAGE EXTERNAL;

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE job_%s PARTITION OF job FOR VALUES WITH (MODULUS 16, REMAINDER %s) '
            'WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)', part, part);
        EXECUTE format('ALTER TABLE job_%s ALTER COLUMN input SET STORAGE EXTERNAL', part);
        EXECUTE format('ALTER TABLE job_%s ALTER COLUMN outcome SET STORAGE EXTERNAL', part);
    END LOOP;
END $$;

CREATE TABLE chunk (
    endpoint int4 NOT NULL, seq int8 NOT NULL, "offset" int8 NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (endpoint, seq, "offset")
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE stream (
    endpoint int4 NOT NULL, seq int8 NOT NULL, next int8 NOT NULL, consumed int8 NOT NULL, PRIMARY KEY (endpoint, seq)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE webhook (
    endpoint int4 NOT NULL, seq int8 NOT NULL, attempts int8 NOT NULL, due_at int8 NOT NULL, PRIMARY KEY (endpoint, seq)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE counters (
    endpoint int4 PRIMARY KEY, completed int8 NOT NULL, failed int8 NOT NULL, retried int8 NOT NULL,
    cancelled int8 NOT NULL, reserved_seq int8 NOT NULL, purged_until int8 NOT NULL
) WITH (fillfactor = 50);

-- The catalog: endpoints, templates, keys, settings and JSON rows, with the classes of the embedded store's records of kind
-- 13. `rank` is the order of creation.
CREATE SEQUENCE value_rank;
CREATE TABLE value (
    class int2 NOT NULL, id bytea NOT NULL, rank int8 NOT NULL DEFAULT nextval('value_rank'), value bytea NOT NULL,
    PRIMARY KEY (class, id)
);

-- The largest endpoint number that was ever assigned: one row.
CREATE TABLE last_endpoint (no int8 NOT NULL);
INSERT INTO last_endpoint VALUES (0);

-- What the state of a packed row is, for people: SELECT job_state(row), count(*) FROM job GROUP BY 1.
CREATE FUNCTION job_state(packed bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE get_byte(packed, 2)
        WHEN 0 THEN 'IN_QUEUE' WHEN 1 THEN 'IN_PROGRESS' WHEN 2 THEN 'COMPLETED'
        WHEN 3 THEN 'FAILED' WHEN 4 THEN 'CANCELLED' WHEN 5 THEN 'TIMED_OUT' END;
