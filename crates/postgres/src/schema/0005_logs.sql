-- Lines of logs: `audit`, and `webhooks/ENDPOINT` for the deliveries of each endpoint. No decision depends on a line, so that
-- any server may append one. `no` orders the lines of a log.
CREATE SEQUENCE log_line_no;
CREATE TABLE log_line (
    log text COLLATE "C" NOT NULL, no int8 NOT NULL DEFAULT nextval('log_line_no'), line bytea NOT NULL, PRIMARY KEY (log, no)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- The audit log, for people: SELECT entry->>'at', entry->>'path' FROM audit ORDER BY id DESC LIMIT 20.
CREATE VIEW audit AS SELECT no AS id, convert_from(line, 'UTF8')::jsonb AS entry FROM log_line WHERE log = 'audit';
