-- As the function without the last three arguments, for a batch with lines of logs: the audit log has a change if, and only if, the
-- change took effect.
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
    line_logs text[], line_numbers int8[], lines bytea[]
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
        attempted, attempt_bytes) b;
    IF FOUND THEN
        -- Nothing was written.
        RETURN;
    END IF;
    INSERT INTO log_line (log, no, line)
        SELECT u.log, u.no, u.line FROM unnest(line_logs, line_numbers, lines) u(log, no, line);
END $$;
