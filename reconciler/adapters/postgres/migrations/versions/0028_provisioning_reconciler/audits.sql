-- What people did past the ordinary way, and why: each table is only appended to, and refers to
-- no other.

-- What was done past the ordered teardown (design, "What holds it"); a raised spec.retry is a
-- person's word that something starts over.
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
        action IN ('force-release', 'unreleased-substrate-gone', 'recreate', 'retry')
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

-- A token that an operator revokes, and a node that one takes out because nobody else will.
CREATE TABLE plexsphere.operator_audit (
    sequence                bigint      GENERATED ALWAYS AS IDENTITY,
    at                      timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor                   text        NOT NULL,
    action                  text        NOT NULL,
    project_id              uuid        NOT NULL,
    provisioned_resource_id uuid        NOT NULL,
    bootstrap_token_id      uuid        NOT NULL,
    node_id                 uuid,
    reason                  text,
    CONSTRAINT operator_audit_pkey PRIMARY KEY (sequence),
    CONSTRAINT operator_audit_actor_check CHECK (char_length(actor) BETWEEN 1 AND 1024),
    CONSTRAINT operator_audit_action_check CHECK (action IN ('revoke-token', 'deregister-node')),
    CONSTRAINT operator_audit_node_check CHECK (
        (action = 'deregister-node') = (node_id IS NOT NULL AND reason IS NOT NULL)
    ),
    CONSTRAINT operator_audit_reason_check CHECK (char_length(reason) BETWEEN 1 AND 512)
);
COMMENT ON TABLE plexsphere.operator_audit IS
    'Append-only; refers to no table, so that it outlives what it speaks of';
COMMENT ON COLUMN plexsphere.operator_audit.actor IS
    'The user''s name as the API server''s TokenReview gives it';
CREATE INDEX operator_audit_at_idx ON plexsphere.operator_audit (at);

CREATE FUNCTION plexsphere.refuse_operator_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'plexsphere.operator_audit is append-only' USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER operator_audit_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON plexsphere.operator_audit
    FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_operator_audit_change();

-- An event that was published again, or passed over.
CREATE TABLE plexsphere.event_audit (
    sequence     bigint      GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor        text        NOT NULL,
    action       text        NOT NULL,
    reason       text        NOT NULL,
    event_id     uuid        NOT NULL,
    event_type   text        NOT NULL,
    aggregate_id uuid        NOT NULL,
    CONSTRAINT event_audit_pkey PRIMARY KEY (sequence),
    CONSTRAINT event_audit_actor_check CHECK (char_length(actor) BETWEEN 1 AND 256),
    CONSTRAINT event_audit_action_check CHECK (action IN ('replay', 'skip')),
    CONSTRAINT event_audit_reason_check CHECK (char_length(reason) BETWEEN 1 AND 1024)
);
COMMENT ON TABLE plexsphere.event_audit IS
    'Append-only; refers to no table, so that it outlives what it speaks of';
COMMENT ON COLUMN plexsphere.event_audit.actor IS
    'Operating system''s user and database''s user of who ran the command';
CREATE INDEX event_audit_at_idx ON plexsphere.event_audit (at);

CREATE FUNCTION plexsphere.refuse_event_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'plexsphere.event_audit is append-only' USING ERRCODE = '42501';
END
$$;
CREATE TRIGGER event_audit_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON plexsphere.event_audit
    FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_event_audit_change();
