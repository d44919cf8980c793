-- Writes one batch under the epoch of the shard's owner, directly after the batch before it. Returns nothing if the batch took
-- effect; else the shard's epoch and its number of batches, and nothing was written.
CREATE FUNCTION commit_batch(
    shard_no int2, owner_epoch int8, batches_before int8, is_synced bool,
    deleted int8[],
    submitted int8[], submitted_rows bytea[], submitted_inputs bytea[], submitted_outcomes bytea[],
    changed int8[], changed_rows bytea[], changed_inputs bytea[], changed_outcomes bytea[], changed_parts int2[],
    chunks_dropped int8[],
    chunks int8[], chunk_offsets int8[], chunk_bytes bytea[],
    streams int8[], stream_nexts int8[], stream_consumed int8[],
    streams_deleted int8[],
    webhooks int8[], webhook_attempts int8[], webhook_due int8[],
    webhooks_deleted int8[],
    counted int4[], counts int8[],
    endpoints_deleted int4[], last_endpoint_no int8,
    values_deleted bytea[], value_classes_deleted int2[],
    value_ids bytea[], value_classes int2[], value_bytes bytea[]
) RETURNS TABLE (epoch int8, batches int8) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    touched int8;
BEGIN
    UPDATE shard SET batches = shard.batches + 1
        WHERE no = shard_no AND shard.epoch = owner_epoch AND shard.batches = batches_before;
    IF NOT FOUND THEN
        -- Two nulls if the database has no such shard.
        RETURN QUERY SELECT s.epoch, s.batches FROM (SELECT 1) one LEFT JOIN shard s ON s.no = shard_no;
        RETURN;
    END IF;
    IF is_synced THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    IF cardinality(deleted) > 0 THEN
        DELETE FROM job USING unnest(deleted) u(key) WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
        DELETE FROM stream USING unnest(deleted) u(key) WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
        DELETE FROM webhook USING unnest(deleted) u(key) WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
        DELETE FROM chunk USING unnest(deleted) u(key) WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
    END IF;
    IF cardinality(submitted) > 0 THEN
        INSERT INTO job (endpoint, seq, row, input, outcome)
            SELECT job_endpoint(u.key), job_seq(u.key), u.row, u.input, u.outcome
            FROM unnest(submitted, submitted_rows, submitted_inputs, submitted_outcomes) u(key, row, input, outcome)
            ON CONFLICT (endpoint, seq) DO UPDATE
            SET row = excluded.row, input = excluded.input, outcome = coalesce(excluded.outcome, job.outcome);
    END IF;
    IF cardinality(changed) > 0 THEN
        -- Bits of the parts that the change sets: 1 the row, 2 the input, 4 the outcome.
        UPDATE job SET row = CASE WHEN parts & 1 <> 0 THEN u.row ELSE job.row END,
                input = CASE WHEN parts & 2 <> 0 THEN u.input ELSE job.input END,
                outcome = CASE WHEN parts & 4 <> 0 THEN u.outcome ELSE job.outcome END
            FROM unnest(changed, changed_rows, changed_inputs, changed_outcomes, changed_parts)
                u(key, row, input, outcome, parts)
            WHERE endpoint = job_endpoint(u.key) AND seq = job_seq(u.key);
        GET DIAGNOSTICS touched = ROW_COUNT;
        IF touched < cardinality(changed) THEN
            INSERT INTO job (endpoint, seq, row, input, outcome)
                SELECT job_endpoint(u.key), job_seq(u.key), u.row, u.input, u.outcome
                FROM unnest(changed, changed_rows, changed_inputs, changed_outcomes) u(key, row, input, outcome)
                WHERE u.row IS NOT NULL OR u.input IS NOT NULL OR u.outcome IS NOT NULL
                ON CONFLICT (endpoint, seq) DO NOTHING;
        END IF;
    END IF;
    IF cardinality(chunks_dropped) > 0 THEN
        DELETE FROM chunk USING unnest(chunks_dropped) u(key)
            WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
    END IF;
    IF cardinality(chunks) > 0 THEN
        INSERT INTO chunk (endpoint, seq, "offset", bytes)
            SELECT job_endpoint(key), job_seq(key), u."offset", u.bytes
            FROM unnest(chunks, chunk_offsets, chunk_bytes) u(key, "offset", bytes)
            ON CONFLICT (endpoint, seq, "offset") DO UPDATE SET bytes = excluded.bytes;
    END IF;
    IF cardinality(streams_deleted) > 0 THEN
        DELETE FROM stream USING unnest(streams_deleted) u(key)
            WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
    END IF;
    IF cardinality(streams) > 0 THEN
        INSERT INTO stream (endpoint, seq, next, consumed)
            SELECT job_endpoint(key), job_seq(key), u.next, u.consumed
            FROM unnest(streams, stream_nexts, stream_consumed) u(key, next, consumed)
            ON CONFLICT (endpoint, seq) DO UPDATE SET next = excluded.next, consumed = excluded.consumed;
    END IF;
    IF cardinality(webhooks_deleted) > 0 THEN
        DELETE FROM webhook USING unnest(webhooks_deleted) u(key)
            WHERE endpoint = job_endpoint(key) AND seq = job_seq(key);
    END IF;
    IF cardinality(webhooks) > 0 THEN
        INSERT INTO webhook (endpoint, seq, attempts, due_at)
            SELECT job_endpoint(key), job_seq(key), u.attempts, u.due_at
            FROM unnest(webhooks, webhook_attempts, webhook_due) u(key, attempts, due_at)
            ON CONFLICT (endpoint, seq) DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at;
    END IF;
    IF cardinality(endpoints_deleted) > 0 THEN
        DELETE FROM counters USING unnest(endpoints_deleted) u(no) WHERE endpoint = no;
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
    IF last_endpoint_no > 0 THEN
        UPDATE last_endpoint SET no = greatest(no, last_endpoint_no);
    END IF;
    IF cardinality(values_deleted) > 0 THEN
        DELETE FROM value USING unnest(value_classes_deleted, values_deleted) u(class, id)
            WHERE value.class = u.class AND value.id = u.id;
    END IF;
    IF cardinality(value_ids) > 0 THEN
        INSERT INTO value (class, id, value)
            SELECT u.class, u.id, u.value
            FROM unnest(value_classes, value_ids, value_bytes) WITH ORDINALITY u(class, id, value, at) ORDER BY at
            ON CONFLICT (class, id) DO UPDATE SET value = excluded.value;
    END IF;
END $$;
