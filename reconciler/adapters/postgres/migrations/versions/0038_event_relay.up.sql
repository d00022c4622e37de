-- What the relay of the outbox needs, and the events of the fleet and of tokens, told in the
-- transaction of their change whichever statement makes it (docs/events.md).

ALTER TABLE plexsphere.outbox_events
    ADD COLUMN attempts     integer     NOT NULL DEFAULT 0,
    ADD COLUMN available_at timestamptz,
    ADD COLUMN parked_at    timestamptz,
    ADD COLUMN skipped_at   timestamptz,
    ADD COLUMN last_error   text,
    ADD CONSTRAINT outbox_events_attempts_check CHECK (attempts >= 0),
    ADD CONSTRAINT outbox_events_parked_check CHECK (parked_at IS NULL OR published_at IS NULL),
    ADD CONSTRAINT outbox_events_skipped_check CHECK (
        skipped_at IS NULL OR published_at IS NOT NULL
    ),
    ADD CONSTRAINT outbox_events_last_error_check CHECK (
        char_length(last_error) BETWEEN 1 AND 256
    );
COMMENT ON COLUMN plexsphere.outbox_events.attempts IS
    'Failures while the sink took other events; since the last replay';
COMMENT ON COLUMN plexsphere.outbox_events.available_at IS
    'Not before; NULL is at once';
COMMENT ON COLUMN plexsphere.outbox_events.parked_at IS
    'Given up until an operator replays or skips it; the later events of its aggregate wait';
COMMENT ON COLUMN plexsphere.outbox_events.skipped_at IS
    'An operator let it go unpublished; published_at is set for the order''s sake';
COMMENT ON COLUMN plexsphere.outbox_events.last_error IS
    'Class or status of the last failure, never a body';
CREATE INDEX outbox_events_waiting_idx
    ON plexsphere.outbox_events (aggregate_id, aggregate_sequence)
    WHERE published_at IS NULL;
CREATE INDEX outbox_events_parked_idx ON plexsphere.outbox_events (sequence)
    WHERE parked_at IS NOT NULL;
-- Every row is written twice, so one version of each dies: do not wait for a fifth of the table.
ALTER TABLE plexsphere.outbox_events SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

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

-- uuidv7() is Postgres 18's. Of a random UUID, 48 bits become the milliseconds and two bits the
-- version (RFC 9562, 5.7).
CREATE FUNCTION plexsphere.new_event_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(
        uuid_send(gen_random_uuid())
        PLACING substring(
            int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3
        )
        FROM 1 FOR 6
    ), 52, 1), 53, 1), 'hex')::uuid
$$;

CREATE FUNCTION plexsphere.tell(
    its_type text, its_id uuid, its_sequence bigint, event text, at timestamptz, data jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event_id uuid := plexsphere.new_event_id();
BEGIN
    INSERT INTO plexsphere.outbox_events
        (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
    VALUES (event_id, its_type, its_id, its_sequence, event, data || jsonb_build_object(
        'EventID', event_id,
        'OccurredAt', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ), at);
END $$;
COMMENT ON FUNCTION plexsphere.tell IS
    'The caller holds the lock of the row whose counter gave the sequence';

ALTER TABLE plexsphere.bootstrap_tokens
    ADD COLUMN events      bigint NOT NULL DEFAULT 0,
    ADD COLUMN expiry_told timestamptz;
ALTER TABLE plexsphere.bootstrap_tokens ALTER COLUMN events SET DEFAULT 1;
COMMENT ON COLUMN plexsphere.bootstrap_tokens.events IS
    'Events told of it; 0 for one of before revision 0038 of which none was';
COMMENT ON COLUMN plexsphere.bootstrap_tokens.expiry_told IS
    'The end of the window whose passing was told; a window that is opened anew ends again';
-- Of when this revision was here before; the same below.
UPDATE plexsphere.bootstrap_tokens AS token SET events = told.last_sequence
FROM (
    SELECT aggregate_id, max(aggregate_sequence) AS last_sequence FROM plexsphere.outbox_events
    WHERE aggregate_type = 'BootstrapToken' GROUP BY aggregate_id
) AS told
WHERE told.aggregate_id = token.id;
UPDATE plexsphere.bootstrap_tokens SET expiry_told = expires_at
WHERE expires_at <= now() AND consumed_at IS NULL AND revoked_at IS NULL;
CREATE INDEX bootstrap_tokens_expires_idx ON plexsphere.bootstrap_tokens (expires_at);

CREATE FUNCTION plexsphere.tell_of_token() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    data jsonb := jsonb_build_object(
        'BootstrapTokenID', NEW.id, 'ProvisionedResourceID', NEW.provisioned_resource_id,
        'ProjectID', NEW.project_id, 'Generation', NEW.generation,
        'ExpiresAt', to_char(NEW.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    );
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM plexsphere.tell('BootstrapToken', NEW.id, NEW.events,
            'identity.BootstrapTokenIssued', NEW.issued_at, data);
        RETURN NULL;
    END IF;
    NEW.events := NEW.events + 1;
    IF NEW.revoked_at IS NOT NULL THEN
        PERFORM plexsphere.tell('BootstrapToken', NEW.id, NEW.events,
            'identity.BootstrapTokenRevoked', NEW.revoked_at, data);
    ELSE
        PERFORM plexsphere.tell('BootstrapToken', NEW.id, NEW.events,
            'identity.BootstrapTokenExpired', NEW.expires_at, data);
    END IF;
    RETURN NEW;
END $$;
-- After: an insertion that meets a conflict fires what comes before it too.
CREATE TRIGGER bootstrap_tokens_issued
    AFTER INSERT ON plexsphere.bootstrap_tokens
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_token();
CREATE TRIGGER bootstrap_tokens_revoked
    BEFORE UPDATE OF revoked_at ON plexsphere.bootstrap_tokens
    FOR EACH ROW WHEN (OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL)
    EXECUTE FUNCTION plexsphere.tell_of_token();
CREATE TRIGGER bootstrap_tokens_expired
    BEFORE UPDATE OF expiry_told ON plexsphere.bootstrap_tokens
    FOR EACH ROW WHEN (NEW.expiry_told IS DISTINCT FROM OLD.expiry_told)
    EXECUTE FUNCTION plexsphere.tell_of_token();

CREATE FUNCTION plexsphere.tell_of_cluster() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM plexsphere.tell('ManagementCluster', NEW.id, 1,
        'managementfleet.ManagementClusterRegistered', NEW.created_at, jsonb_build_object(
            'ManagementClusterID', NEW.id, 'Name', NEW.name, 'Slug', NEW.slug,
            'Region', coalesce(NEW.region, '')
        ));
    RETURN NULL;
END $$;
CREATE TRIGGER management_clusters_registered
    AFTER INSERT ON plexsphere.management_clusters
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_cluster();

ALTER TABLE plexsphere.project_cluster_assignments ADD COLUMN events bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN plexsphere.project_cluster_assignments.events IS
    'Events told of the Project''s placement and namespace';
UPDATE plexsphere.project_cluster_assignments AS placement SET events = told.last_sequence
FROM (
    SELECT aggregate_id, max(aggregate_sequence) AS last_sequence FROM plexsphere.outbox_events
    WHERE aggregate_type = 'Project' GROUP BY aggregate_id
) AS told
WHERE told.aggregate_id = placement.project_id;

CREATE FUNCTION plexsphere.tell_of_placement() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fresh boolean := TG_OP = 'INSERT';
    told  bigint;
    named jsonb := jsonb_build_object(
        'ProjectID', NEW.project_id, 'NamespaceName', NEW.namespace_name);
BEGIN
    told := CASE WHEN fresh THEN 0 ELSE OLD.events END;
    IF fresh OR NEW.management_cluster_id <> OLD.management_cluster_id THEN
        told := told + 1;
        PERFORM plexsphere.tell('Project', NEW.project_id, told,
            'managementfleet.ProjectClusterAssigned', NEW.updated_at,
            named || jsonb_build_object(
                'ManagementClusterID', NEW.management_cluster_id,
                'Region', coalesce(NEW.region, '')));
    END IF;
    -- A namespace never comes back from termination: what is ready again is another one.
    IF NOT fresh AND OLD.namespace_phase <> 'Deleted' AND (NEW.namespace_phase = 'Deleted' OR (
        OLD.namespace_phase = 'Terminating' AND NEW.namespace_phase <> 'Terminating'
    )) THEN
        told := told + 1;
        PERFORM plexsphere.tell('Project', NEW.project_id, told,
            'managementfleet.ProjectNamespaceTerminated', NEW.updated_at, named);
    END IF;
    IF NEW.namespace_phase = 'Ready' AND (fresh OR OLD.namespace_phase <> 'Ready') THEN
        told := told + 1;
        PERFORM plexsphere.tell('Project', NEW.project_id, told,
            'managementfleet.ProjectNamespaceReady', NEW.updated_at, named);
    END IF;
    NEW.events := told;
    RETURN NEW;
END $$;
CREATE FUNCTION plexsphere.count_placement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.events := CASE WHEN NEW.namespace_phase = 'Ready' THEN 2 ELSE 1 END;
    RETURN NEW;
END $$;
CREATE TRIGGER project_cluster_assignments_counted
    BEFORE INSERT ON plexsphere.project_cluster_assignments
    FOR EACH ROW EXECUTE FUNCTION plexsphere.count_placement();
CREATE TRIGGER project_cluster_assignments_placed
    AFTER INSERT ON plexsphere.project_cluster_assignments
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_placement();
CREATE TRIGGER project_cluster_assignments_changed
    BEFORE UPDATE OF management_cluster_id, namespace_phase
    ON plexsphere.project_cluster_assignments
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_placement();
