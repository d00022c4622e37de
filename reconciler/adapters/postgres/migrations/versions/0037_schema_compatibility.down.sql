-- An earlier program counts the events that are there. Where the newest were removed it would give
-- their numbers again, which consumers have seen.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM plexsphere.provisioned_resources AS resource
        WHERE status <> 'Deleted' AND events > (
            SELECT coalesce(max(aggregate_sequence), 0) FROM plexsphere.outbox_events AS event
            WHERE event.aggregate_id = resource.id
        )
    ) THEN
        RAISE EXCEPTION
            'published events of live resources were removed; an earlier program would reuse their numbers';
    END IF;
END
$$;
ALTER TABLE plexsphere.provisioned_resources DROP COLUMN events;
DROP TABLE plexsphere.schema_compatibility;
