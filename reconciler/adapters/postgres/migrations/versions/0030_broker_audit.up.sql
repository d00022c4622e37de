-- What was done past the ordered teardown, by whom and why (design, "What holds it").

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN force_released_at timestamptz,
    ADD CONSTRAINT provisioned_resources_force_released_check CHECK (
        force_released_at IS NULL OR deletion_requested_at IS NOT NULL
    );

CREATE TABLE plexsphere.broker_audit (
    id                      uuid        NOT NULL,
    at                      timestamptz NOT NULL DEFAULT now(),
    management_cluster_id   uuid        NOT NULL,
    project_id              uuid        NOT NULL,
    provisioned_resource_id uuid        NOT NULL,
    namespace               text        NOT NULL,
    record_name             text        NOT NULL,
    action                  text        NOT NULL,
    reason                  text        NOT NULL,
    actor                   text,
    CONSTRAINT broker_audit_pkey PRIMARY KEY (id),
    CONSTRAINT broker_audit_action_check CHECK (
        action IN ('force-release', 'unreleased-substrate-gone')
    ),
    CONSTRAINT broker_audit_reason_check CHECK (char_length(reason) BETWEEN 1 AND 1024)
);
COMMENT ON TABLE plexsphere.broker_audit IS
    'Append-only; refers to no table, so that it outlives what it speaks of';
COMMENT ON COLUMN plexsphere.broker_audit.actor IS
    'Field manager that asked for it, when known; the API server''s audit log has the user';
CREATE UNIQUE INDEX broker_audit_force_release_unique
    ON plexsphere.broker_audit (provisioned_resource_id)
    WHERE action = 'force-release';
CREATE INDEX broker_audit_at_idx ON plexsphere.broker_audit (at);

CREATE FUNCTION plexsphere.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'plexsphere.broker_audit is append-only' USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER broker_audit_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON plexsphere.broker_audit
    FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_audit_change();
