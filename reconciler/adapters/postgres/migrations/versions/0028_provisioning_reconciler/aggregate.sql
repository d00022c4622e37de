-- The aggregate as the record's exchange needs it (design, "One exchange object").
-- No default for what only the application knows: the table must be empty, and a row that
-- could not be hydrated is refused here and not in a tick.

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN management_cluster_id uuid        NOT NULL,
    ADD COLUMN namespace             text        NOT NULL,
    ADD COLUMN xr_group              text        NOT NULL,
    ADD COLUMN xr_kind               text        NOT NULL,
    ADD COLUMN owner_name            text        NOT NULL,
    ADD COLUMN resource              text        NOT NULL,
    ADD COLUMN record_name           text        NOT NULL,
    ADD COLUMN record_uid            text        NOT NULL,
    ADD COLUMN accepted              jsonb       NOT NULL,
    ADD COLUMN protected             jsonb       NOT NULL,
    ADD COLUMN generation            integer     NOT NULL DEFAULT 0,
    ADD COLUMN version               bigint      NOT NULL DEFAULT 0,
    -- By whose word the ordered teardown was gone past: broker_audit.
    ADD COLUMN force_released_at     timestamptz,
    -- A node that is waited for has a deadline; it survives a restart.
    ADD COLUMN enrolling_since       timestamptz,
    -- A machine whose node did not come is made anew (docs/decisions/0014-recreate.md); a restart
    -- in the middle of it goes on.
    ADD COLUMN recreations           integer     NOT NULL DEFAULT 0,
    ADD COLUMN recreating_since      timestamptz,
    -- An aggregate's events go on counting after the published ones were removed
    -- (docs/operations/retention.md).
    ADD COLUMN events                bigint      NOT NULL DEFAULT 0,
    -- What a teardown must know although nobody else remembers it: the objects that a substrate
    -- was made of (docs/decisions/0016-children-and-orphans.md), and the knobs that its document
    -- was rendered with.
    ADD COLUMN children              jsonb       NOT NULL DEFAULT '[]',
    ADD COLUMN rendered_with         jsonb,
    -- The time that a substrate may take; it survives a restart
    -- (docs/decisions/0021-provisioning-deadline.md).
    ADD COLUMN provisioning_since    timestamptz,
    -- Attempts are counted by themselves: spec.retry falls when an XR is made anew, and a number
    -- that falls tells two attempts by one key, so that the later one's event is swallowed.
    ADD COLUMN retries               integer     NOT NULL DEFAULT 0,
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
    ),
    ADD CONSTRAINT provisioned_resources_force_released_check CHECK (
        force_released_at IS NULL OR deletion_requested_at IS NOT NULL
    ),
    ADD CONSTRAINT provisioned_resources_recreations_check CHECK (recreations >= 0),
    ADD CONSTRAINT provisioned_resources_events_check CHECK (events >= 0),
    ADD CONSTRAINT provisioned_resources_children_check CHECK (jsonb_typeof(children) = 'array'),
    ADD CONSTRAINT provisioned_resources_rendered_with_check CHECK (
        jsonb_typeof(rendered_with) = 'object'
    ),
    ADD CONSTRAINT provisioned_resources_retries_check CHECK (retries >= 0);
COMMENT ON COLUMN plexsphere.provisioned_resources.enrolling_since IS
    'When the substrate was ready and its node still to come; null before';
COMMENT ON COLUMN plexsphere.provisioned_resources.recreations IS
    'Substrates let go to be made anew since spec.retry was raised last';
COMMENT ON COLUMN plexsphere.provisioned_resources.recreating_since IS
    'When the recreation under way began; null while none is';
COMMENT ON COLUMN plexsphere.provisioned_resources.events IS
    'Events told of it, whether they are still in the outbox or not';
COMMENT ON COLUMN plexsphere.provisioned_resources.children IS
    'Objects that the substrate composed, each with its reference and its uid once it was seen';
COMMENT ON COLUMN plexsphere.provisioned_resources.rendered_with IS
    'Knobs of the enrolment document under the substrate; null before there is one';
COMMENT ON COLUMN plexsphere.provisioned_resources.provisioning_since IS
    'Since when a substrate has been due; null while none is, and once it was Ready';
COMMENT ON COLUMN plexsphere.provisioned_resources.retries IS
    'How often a raised spec.retry was accepted; never falls';

CREATE UNIQUE INDEX provisioned_resources_live_key
    ON plexsphere.provisioned_resources
       (project_id, namespace, xr_group, xr_kind, owner_name, resource)
    WHERE deletion_requested_at IS NULL;
CREATE INDEX provisioned_resources_record_idx
    ON plexsphere.provisioned_resources (record_uid);
-- Counts and names, at ten thousand aggregates (docs/decisions/0017-ten-thousand.md).
CREATE INDEX provisioned_resources_namespace_idx
    ON plexsphere.provisioned_resources (namespace, record_name)
    WHERE status <> 'Deleted';
CREATE INDEX provisioned_resources_unfinished_idx
    ON plexsphere.provisioned_resources (created_at, id)
    WHERE status <> 'Deleted';
-- The few whose siblings are still to be looked after, found without reading every one that
-- ever was.
CREATE INDEX provisioned_resources_unsettled_idx
    ON plexsphere.provisioned_resources (created_at, id)
    WHERE status = 'Deleted' AND protected @> '[{"sibling": true, "released": false}]';
-- What is over, found without a look at what lives (docs/operations/retention.md).
CREATE INDEX provisioned_resources_deleted_idx
    ON plexsphere.provisioned_resources (id)
    WHERE status = 'Deleted';

-- An event is told once an attempt.
ALTER TABLE plexsphere.provisioned_resource_outbox_token
    ADD COLUMN generation integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT provisioned_resource_outbox_token_pkey,
    ADD CONSTRAINT provisioned_resource_outbox_token_pkey
        PRIMARY KEY (provisioned_resource_id, event_type, generation);
