-- The broker's aggregate and its at-most-once event guard (seed 000, "Persistence").
-- resource_id, blueprint_version_id and cloud_credential_id stand for named objects and
-- reference no table of ours (design, "Kinds").

CREATE TABLE plexsphere.provisioned_resources (
    id                   uuid        NOT NULL,
    resource_id          uuid        NOT NULL,
    project_id           uuid        NOT NULL,
    blueprint_version_id uuid        NOT NULL,
    cloud_credential_id  uuid        NOT NULL,
    status               text        NOT NULL,
    xr_name              text        NOT NULL,
    bootstrap_token_id   uuid,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    CONSTRAINT provisioned_resources_pkey PRIMARY KEY (id),
    CONSTRAINT provisioned_resources_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    CONSTRAINT provisioned_resources_status_check CHECK (status IN (
        'Pending', 'Provisioning', 'Enrolling', 'Ready', 'Failed'
    )),
    CONSTRAINT provisioned_resources_xr_name_check CHECK (btrim(xr_name) <> ''),
    CONSTRAINT provisioned_resources_times_check CHECK (created_at <= updated_at)
);
CREATE INDEX provisioned_resources_project_idx
    ON plexsphere.provisioned_resources (project_id);

CREATE TABLE plexsphere.provisioned_resource_outbox_token (
    provisioned_resource_id uuid        NOT NULL,
    event_type              text        NOT NULL,
    created_at              timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT provisioned_resource_outbox_token_pkey
        PRIMARY KEY (provisioned_resource_id, event_type),
    CONSTRAINT provisioned_resource_outbox_token_provisioned_resource_id_fkey
        FOREIGN KEY (provisioned_resource_id)
        REFERENCES plexsphere.provisioned_resources (id) ON DELETE RESTRICT,
    CONSTRAINT provisioned_resource_outbox_token_event_type_check CHECK (event_type IN (
        'broker.ProvisionedResourceRequested',
        'broker.ProvisionedResourceReady',
        'broker.ProvisionedResourceFailed'
    ))
);
