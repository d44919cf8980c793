-- Ended attempts of jobs, in the job's row, so that they are deleted with it: the number of each as 4 bytes with the highest
-- first, then the attempt as in the embedded store's records of kind 19. Null for a job without one.
ALTER TABLE job ADD COLUMN attempts bytea[];

-- The attempts before, with the later ones in place of those with the same numbers; the 8 with the largest numbers.
CREATE FUNCTION newest_attempts(before bytea[], later bytea[]) RETURNS bytea[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        SELECT array_agg(newest.attempt ORDER BY newest.attempt) FROM (
            SELECT one.attempt FROM (
                SELECT unnest(later) AS attempt
                UNION ALL
                SELECT b.attempt FROM unnest(before) b(attempt) WHERE NOT EXISTS (
                    SELECT FROM unnest(later) l(attempt) WHERE substr(l.attempt, 1, 4) = substr(b.attempt, 1, 4))
            ) one ORDER BY one.attempt DESC LIMIT 8
        ) newest
    );

-- As the function without the last two arguments, for a batch with ended attempts. The other batches do not pay for them.
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
    value_ids bytea[], value_classes int2[], value_bytes bytea[],
    attempted int8[], attempt_bytes bytea[]
) RETURNS TABLE (epoch int8, batches int8) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT b.epoch, b.batches FROM commit_batch(
        shard_no, owner_epoch, batches_before, is_synced, deleted,
        submitted, submitted_rows, submitted_inputs, submitted_outcomes,
        changed, changed_rows, changed_inputs, changed_outcomes, changed_parts,
        chunks_dropped, chunks, chunk_offsets, chunk_bytes,
        streams, stream_nexts, stream_consumed, streams_deleted,
        webhooks, webhook_attempts, webhook_due, webhooks_deleted,
        counted, counts, endpoints_deleted, last_endpoint_no,
        values_deleted, value_classes_deleted, value_ids, value_classes, value_bytes) b;
    IF FOUND THEN
        -- Nothing was written.
        RETURN;
    END IF;
    INSERT INTO job (endpoint, seq, attempts)
        SELECT job_endpoint(u.key), job_seq(u.key), newest_attempts(NULL, array_agg(u.attempt))
        FROM unnest(attempted, attempt_bytes) u(key, attempt) GROUP BY u.key
        ON CONFLICT (endpoint, seq) DO UPDATE SET attempts = newest_attempts(job.attempts, excluded.attempts);
END $$;
