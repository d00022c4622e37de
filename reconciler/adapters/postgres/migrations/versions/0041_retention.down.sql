ALTER TABLE plexsphere.outbox_events
    DROP CONSTRAINT outbox_events_aggregate_type_check,
    DROP CONSTRAINT outbox_events_event_type_check;
DROP INDEX plexsphere.provisioned_resources_deleted_idx;
