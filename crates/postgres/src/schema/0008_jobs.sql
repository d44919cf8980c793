-- Jobs in one table, in place of 16 partitions by endpoint: a statement prepares its work for each partition, and looks for the
-- right one for each row. A page is filled to the half, so that a job's next rows go to the same page: then its index stays as it is.
LOCK TABLE job IN ACCESS EXCLUSIVE MODE;
CREATE TABLE job_in_one (LIKE job INCLUDING STORAGE)
    WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
INSERT INTO job_in_one SELECT * FROM job;
DO $$
DECLARE
    given record;
BEGIN
    -- Who may use the table goes on to use it.
    FOR given IN
        SELECT privilege_type, grantee FROM pg_class, aclexplode(relacl)
        WHERE pg_class.oid = 'job'::regclass AND grantee NOT IN (0, relowner)
    LOOP
        EXECUTE format('GRANT %s ON job_in_one TO %s', given.privilege_type, given.grantee::regrole);
    END LOOP;
END $$;
DROP TABLE job;
ALTER TABLE job_in_one RENAME TO job;
ALTER TABLE job ADD CONSTRAINT job_pkey PRIMARY KEY (endpoint, seq);

-- As `commit_batch`, for a batch of what the usual lives of jobs change. It has few arguments, because each one costs time. Returns
-- null if the batch took effect; else the shard's epoch and its number of batches, or an empty array if the database has no such shard.
CREATE FUNCTION commit_jobs(
    shard_no int2, owner_epoch int8, batches_before int8, is_synced bool,
    deleted int8[],
    submitted int8[], submitted_rows bytea[], submitted_inputs bytea[],
    -- The first and the last submitted key of each endpoint.
    submitted_first int8[], submitted_last int8[],
    changed int8[], changed_rows bytea[],
    ended int8[], ended_rows bytea[], ended_outcomes bytea[],
    counted int4[], counts int8[]
) RETURNS int8[] LANGUAGE plpgsql AS $$
DECLARE
    touched int8;
BEGIN
    UPDATE shard SET batches = shard.batches + 1
        WHERE no = shard_no AND epoch = owner_epoch AND batches = batches_before;
    IF NOT FOUND THEN
        RETURN coalesce((SELECT ARRAY[epoch, batches] FROM shard WHERE no = shard_no), '{}');
    END IF;
    IF is_synced THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    -- Several `unnest` in a list of columns give their values one by one; in a `FROM`, each would be stored first.
    IF cardinality(deleted) > 0 THEN
        DELETE FROM job USING (SELECT unnest(deleted) AS key) u WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
        DELETE FROM stream USING (SELECT unnest(deleted) AS key) u WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
        DELETE FROM webhook USING (SELECT unnest(deleted) AS key) u WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
        DELETE FROM chunk USING (SELECT unnest(deleted) AS key) u WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
    END IF;
    IF cardinality(submitted) > 0 THEN
        -- New keys are larger than those that are there. An insert that expects no conflict writes less.
        IF EXISTS (
            SELECT FROM (SELECT unnest(submitted_first) AS first, unnest(submitted_last) AS last) u
            JOIN job ON endpoint = job_endpoint(u.first) AND seq BETWEEN job_seq(u.first) AND job_seq(u.last)
        ) THEN
            INSERT INTO job (endpoint, seq, row, input)
                SELECT job_endpoint(u.key), job_seq(u.key), u.row, u.input
                FROM unnest(submitted, submitted_rows, submitted_inputs) u(key, row, input)
                ON CONFLICT (endpoint, seq) DO UPDATE SET row = excluded.row, input = excluded.input;
        ELSE
            INSERT INTO job (endpoint, seq, row, input)
                SELECT job_endpoint(u.key), job_seq(u.key), u.row, u.input
                FROM (SELECT unnest(submitted) AS key, unnest(submitted_rows) AS row, unnest(submitted_inputs) AS input) u;
        END IF;
    END IF;
    IF cardinality(changed) > 0 THEN
        UPDATE job SET row = u.row
            FROM (SELECT unnest(changed) AS key, unnest(changed_rows) AS row) u
            WHERE endpoint = job_endpoint(u.key) AND seq = job_seq(u.key);
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF touched < cardinality(changed) THEN
            INSERT INTO job (endpoint, seq, row)
                SELECT job_endpoint(u.key), job_seq(u.key), u.row FROM unnest(changed, changed_rows) u(key, row)
                ON CONFLICT (endpoint, seq) DO NOTHING;
        END IF;
    END IF;
    IF cardinality(ended) > 0 THEN
        UPDATE job SET row = u.row, outcome = u.outcome
            FROM (SELECT unnest(ended) AS key, unnest(ended_rows) AS row, unnest(ended_outcomes) AS outcome) u
            WHERE endpoint = job_endpoint(u.key) AND seq = job_seq(u.key);
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF touched < cardinality(ended) THEN
            INSERT INTO job (endpoint, seq, row, outcome)
                SELECT job_endpoint(u.key), job_seq(u.key), u.row, u.outcome
                FROM unnest(ended, ended_rows, ended_outcomes) u(key, row, outcome)
                ON CONFLICT (endpoint, seq) DO NOTHING;
        END IF;
    END IF;
    IF cardinality(counted) > 0 THEN
        -- Six counts for each endpoint.
        INSERT INTO counters (endpoint, completed, failed, retried, cancelled, reserved_seq, purged_until)
            SELECT u.no, counts[6 * at - 5], counts[6 * at - 4], counts[6 * at - 3], counts[6 * at - 2],
                counts[6 * at - 1], counts[6 * at]
            FROM unnest(counted) WITH ORDINALITY u(no, at)
            ON CONFLICT (endpoint) DO UPDATE
            SET completed = excluded.completed, failed = excluded.failed, retried = excluded.retried,
                cancelled = excluded.cancelled, reserved_seq = excluded.reserved_seq, purged_until = excluded.purged_until;
    END IF;
    RETURN NULL;
END $$;
