-- The numbers of the last posts to a stream that a node has passed on, the newest first, 8 bytes each with the highest first. Null
-- for a stream without one.
ALTER TABLE stream ADD COLUMN posts bytea;

-- As the function without the last four arguments, for a batch with streams that have such numbers. The other batches do not pay
-- for them.
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
    attempted int8[], attempt_bytes bytea[],
    line_logs text[], line_numbers int8[], lines bytea[],
    posted int8[], posted_nexts int8[], posted_consumed int8[], post_numbers bytea[]
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
        values_deleted, value_classes_deleted, value_ids, value_classes, value_bytes,
        attempted, attempt_bytes, line_logs, line_numbers, lines) b;
    IF FOUND THEN
        -- Nothing was written.
        RETURN;
    END IF;
    INSERT INTO stream (endpoint, seq, next, consumed, posts)
        SELECT job_endpoint(u.key), job_seq(u.key), u.next, u.consumed, u.posts
        FROM unnest(posted, posted_nexts, posted_consumed, post_numbers) u(key, next, consumed, posts)
        ON CONFLICT (endpoint, seq) DO UPDATE
        SET next = excluded.next, consumed = excluded.consumed, posts = excluded.posts;
END $$;
