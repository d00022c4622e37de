-- The aggregate as the record's exchange needs it (design, "One exchange object").
-- No default for what only the application knows: the table must be empty, and a row that
-- could not be hydrated is refused here and not in a tick.

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN management_cluster_id uuid   NOT NULL,
    ADD COLUMN namespace             text   NOT NULL,
    ADD COLUMN xr_group              text   NOT NULL,
    ADD COLUMN xr_kind               text   NOT NULL,
    ADD COLUMN owner_name            text   NOT NULL,
    ADD COLUMN resource              text   NOT NULL,
    ADD COLUMN record_name           text   NOT NULL,
    ADD COLUMN record_uid            text   NOT NULL,
    ADD COLUMN accepted              jsonb  NOT NULL,
    ADD COLUMN protected             jsonb  NOT NULL,
    ADD COLUMN generation            integer NOT NULL DEFAULT 0,
    ADD COLUMN version               bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT provisioned_resources_management_cluster_id_fkey
        FOREIGN KEY (management_cluster_id)
        REFERENCES plexsphere.management_clusters (id) ON DELETE RESTRICT,
    ADD CONSTRAINT provisioned_resources_xr_name_unique UNIQUE (xr_name),
    ADD CONSTRAINT provisioned_resources_accepted_check
        CHECK (jsonb_typeof(accepted) = 'object'),
    ADD CONSTRAINT provisioned_resources_protected_check
        CHECK (jsonb_typeof(protected) = 'array'),
    ADD CONSTRAINT provisioned_resources_generation_check CHECK (generation >= 0),
    ADD CONSTRAINT provisioned_resources_version_check CHECK (version >= 0),
    ADD CONSTRAINT provisioned_resources_teardown_check CHECK (
        deletion_requested_at IS NOT NULL
        OR status NOT IN ('Deregistering', 'Deprovisioning', 'Deleted')
    );

CREATE UNIQUE INDEX provisioned_resources_live_key
    ON plexsphere.provisioned_resources
       (project_id, namespace, xr_group, xr_kind, owner_name, resource)
    WHERE deletion_requested_at IS NULL;
CREATE INDEX provisioned_resources_record_idx
    ON plexsphere.provisioned_resources (record_uid);
CREATE INDEX provisioned_resources_unfinished_idx
    ON plexsphere.provisioned_resources (created_at, id)
    WHERE status <> 'Deleted';

ALTER TABLE plexsphere.provisioned_resource_outbox_token
    ADD COLUMN generation integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT provisioned_resource_outbox_token_pkey,
    ADD CONSTRAINT provisioned_resource_outbox_token_pkey
        PRIMARY KEY (provisioned_resource_id, event_type, generation);
