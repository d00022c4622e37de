-- The way back to the seeds' schema: every table of the reconciler goes, and of the seeds' tables
-- what it added. Placements, their events and the rows of the aggregate stay.

-- A machine that is made anew has a substrate that was let go and another that comes; without
-- recreating_since nobody knows of the two.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM plexsphere.provisioned_resources
        WHERE recreating_since IS NOT NULL AND deletion_requested_at IS NULL
    ) THEN
        RAISE EXCEPTION
            'machines are being made anew; wait until recreating_since is null in every live row';
    END IF;
END
$$;

-- What counts events again counts from those that are there. Where the newest were removed it
-- would give their numbers once more, which consumers have seen. Of what tells nothing more, a
-- deleted resource or a spent token, no number comes again.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM plexsphere.provisioned_resources AS resource
        WHERE status <> 'Deleted' AND events > (
            SELECT coalesce(max(aggregate_sequence), 0) FROM plexsphere.outbox_events AS event
            WHERE event.aggregate_id = resource.id
        )
    ) OR EXISTS (
        SELECT FROM plexsphere.bootstrap_tokens AS token
        WHERE consumed_at IS NULL AND revoked_at IS NULL AND events > (
            SELECT coalesce(max(aggregate_sequence), 0) FROM plexsphere.outbox_events AS event
            WHERE event.aggregate_id = token.id
        )
    ) OR EXISTS (
        SELECT FROM plexsphere.project_cluster_assignments AS placement
        WHERE events > (
            SELECT coalesce(max(aggregate_sequence), 0) FROM plexsphere.outbox_events AS event
            WHERE event.aggregate_id = placement.project_id
        )
    ) THEN
        RAISE EXCEPTION
            'published events of live resources, unspent tokens or Projects were removed; '
            'their numbers would begin again';
    END IF;
END
$$;

DROP TABLE plexsphere.schema_compatibility;

DROP TABLE plexsphere.orphans;
DROP TABLE plexsphere.shared_holds;
DROP TABLE plexsphere.driver_thaws;
DROP TABLE plexsphere.driver_leases;

DROP TABLE plexsphere.event_audit;
DROP TABLE plexsphere.operator_audit;
DROP TABLE plexsphere.broker_audit;
DROP FUNCTION plexsphere.refuse_event_audit_change;
DROP FUNCTION plexsphere.refuse_operator_audit_change;
DROP FUNCTION plexsphere.refuse_audit_change;

DROP TABLE plexsphere.enrolment_evidence;
DROP FUNCTION plexsphere.refuse_enrolment_evidence_change;
DROP TABLE plexsphere.enrolment_audit;
DROP FUNCTION plexsphere.address_block;

DROP FUNCTION plexsphere.register_node;
DROP FUNCTION plexsphere.peers_of;
DROP FUNCTION plexsphere.take_out_node;
DROP FUNCTION plexsphere.tell_of_node;

DROP TABLE plexsphere.mesh_free;
DROP TABLE plexsphere.mesh_pools;
ALTER TABLE plexsphere.projects DROP COLUMN mesh_subrange;
DROP TABLE plexsphere.registration_nonces;
DROP TABLE plexsphere.nodes;
DROP TABLE plexsphere.bootstrap_tokens;
DROP FUNCTION plexsphere.tell_of_token;
DROP FUNCTION plexsphere.names_of;

DROP TRIGGER project_cluster_assignments_changed ON plexsphere.project_cluster_assignments;
DROP TRIGGER project_cluster_assignments_placed ON plexsphere.project_cluster_assignments;
DROP TRIGGER project_cluster_assignments_counted ON plexsphere.project_cluster_assignments;
DROP FUNCTION plexsphere.count_placement;
DROP FUNCTION plexsphere.tell_of_placement;
ALTER TABLE plexsphere.project_cluster_assignments DROP COLUMN events;
DROP TRIGGER management_clusters_registered ON plexsphere.management_clusters;
DROP FUNCTION plexsphere.tell_of_cluster;

DROP FUNCTION plexsphere.tell;
DROP FUNCTION plexsphere.new_event_id;
ALTER TABLE plexsphere.outbox_events RESET (
    autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold
);
DROP INDEX plexsphere.outbox_events_parked_idx;
DROP INDEX plexsphere.outbox_events_waiting_idx;
ALTER TABLE plexsphere.outbox_events
    DROP CONSTRAINT outbox_events_aggregate_type_check,
    DROP CONSTRAINT outbox_events_event_type_check,
    DROP CONSTRAINT outbox_events_skipped_check,
    DROP CONSTRAINT outbox_events_parked_check,
    DROP COLUMN last_error,
    DROP COLUMN skipped_at,
    DROP COLUMN parked_at,
    DROP COLUMN available_at,
    DROP COLUMN attempts;

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

DROP INDEX plexsphere.provisioned_resources_deleted_idx;
DROP INDEX plexsphere.provisioned_resources_unsettled_idx;
DROP INDEX plexsphere.provisioned_resources_unfinished_idx;
DROP INDEX plexsphere.provisioned_resources_namespace_idx;
DROP INDEX plexsphere.provisioned_resources_record_idx;
DROP INDEX plexsphere.provisioned_resources_live_key;
-- A CHECK on more than one column, or on one that stays, goes by name; the others with theirs.
ALTER TABLE plexsphere.provisioned_resources
    DROP CONSTRAINT provisioned_resources_force_released_check,
    DROP CONSTRAINT provisioned_resources_teardown_check,
    DROP CONSTRAINT provisioned_resources_xr_name_unique,
    DROP COLUMN retries,
    DROP COLUMN provisioning_since,
    DROP COLUMN rendered_with,
    DROP COLUMN children,
    DROP COLUMN events,
    DROP COLUMN recreating_since,
    DROP COLUMN recreations,
    DROP COLUMN enrolling_since,
    DROP COLUMN force_released_at,
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
