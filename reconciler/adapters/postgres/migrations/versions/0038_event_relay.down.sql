-- What comes up again counts from the events that are there. Where the newest were removed it would
-- begin again, with numbers that consumers have seen. A spent token tells nothing more.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM plexsphere.project_cluster_assignments AS placement
        WHERE events > (
            SELECT coalesce(max(aggregate_sequence), 0) FROM plexsphere.outbox_events AS event
            WHERE event.aggregate_id = placement.project_id
        )
    ) OR EXISTS (
        SELECT FROM plexsphere.bootstrap_tokens AS token
        WHERE consumed_at IS NULL AND revoked_at IS NULL AND events > (
            SELECT coalesce(max(aggregate_sequence), 0) FROM plexsphere.outbox_events AS event
            WHERE event.aggregate_id = token.id
        )
    ) THEN
        RAISE EXCEPTION
            'published events of Projects or of unspent tokens were removed; their numbers would begin again';
    END IF;
END
$$;
DROP TRIGGER project_cluster_assignments_changed ON plexsphere.project_cluster_assignments;
DROP TRIGGER project_cluster_assignments_placed ON plexsphere.project_cluster_assignments;
DROP TRIGGER project_cluster_assignments_counted ON plexsphere.project_cluster_assignments;
DROP FUNCTION plexsphere.count_placement;
DROP FUNCTION plexsphere.tell_of_placement;
ALTER TABLE plexsphere.project_cluster_assignments DROP COLUMN events;

DROP TRIGGER management_clusters_registered ON plexsphere.management_clusters;
DROP FUNCTION plexsphere.tell_of_cluster;

DROP TRIGGER bootstrap_tokens_expired ON plexsphere.bootstrap_tokens;
DROP TRIGGER bootstrap_tokens_revoked ON plexsphere.bootstrap_tokens;
DROP TRIGGER bootstrap_tokens_issued ON plexsphere.bootstrap_tokens;
DROP FUNCTION plexsphere.tell_of_token;
DROP INDEX plexsphere.bootstrap_tokens_expires_idx;
ALTER TABLE plexsphere.bootstrap_tokens
    DROP COLUMN expiry_told,
    DROP COLUMN events;

DROP FUNCTION plexsphere.tell;
DROP FUNCTION plexsphere.new_event_id;
DROP TABLE plexsphere.event_audit;
DROP FUNCTION plexsphere.refuse_event_audit_change;

ALTER TABLE plexsphere.outbox_events RESET (
    autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold
);
DROP INDEX plexsphere.outbox_events_parked_idx;
DROP INDEX plexsphere.outbox_events_waiting_idx;
ALTER TABLE plexsphere.outbox_events
    DROP CONSTRAINT outbox_events_last_error_check,
    DROP CONSTRAINT outbox_events_skipped_check,
    DROP CONSTRAINT outbox_events_parked_check,
    DROP CONSTRAINT outbox_events_attempts_check,
    DROP COLUMN last_error,
    DROP COLUMN skipped_at,
    DROP COLUMN parked_at,
    DROP COLUMN available_at,
    DROP COLUMN attempts;
