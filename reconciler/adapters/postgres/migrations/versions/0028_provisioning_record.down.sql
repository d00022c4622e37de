-- One guard per event type remains; the events themselves stay in the outbox.
DELETE FROM plexsphere.provisioned_resource_outbox_token AS later
    USING plexsphere.provisioned_resource_outbox_token AS earlier
    WHERE later.provisioned_resource_id = earlier.provisioned_resource_id
      AND later.event_type = earlier.event_type
      AND later.generation > earlier.generation;

ALTER TABLE plexsphere.provisioned_resource_outbox_token
    DROP CONSTRAINT provisioned_resource_outbox_token_pkey,
    DROP COLUMN generation,
    ADD CONSTRAINT provisioned_resource_outbox_token_pkey
        PRIMARY KEY (provisioned_resource_id, event_type);

DROP INDEX plexsphere.provisioned_resources_unfinished_idx;
DROP INDEX plexsphere.provisioned_resources_record_idx;
DROP INDEX plexsphere.provisioned_resources_live_key;

ALTER TABLE plexsphere.provisioned_resources
    DROP CONSTRAINT provisioned_resources_teardown_check,
    DROP CONSTRAINT provisioned_resources_xr_name_unique,
    DROP COLUMN version,
    DROP COLUMN generation,
    DROP COLUMN protected,
    DROP COLUMN accepted,
    DROP COLUMN record_uid,
    DROP COLUMN record_name,
    DROP COLUMN resource,
    DROP COLUMN owner_name,
    DROP COLUMN xr_kind,
    DROP COLUMN xr_group,
    DROP COLUMN namespace,
    DROP COLUMN management_cluster_id;
