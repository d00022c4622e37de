-- What the relay of the outbox needs, and how a statement tells an event (docs/events.md).

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
    ),
    -- No event that nobody declared.
    ADD CONSTRAINT outbox_events_event_type_check CHECK (event_type IN (
        'broker.ProvisionedResourceRequested',
        'broker.ProvisionedResourceReady',
        'broker.ProvisionedResourceFailed',
        'broker.ProvisionedResourceDeleting',
        'broker.ProvisionedResourceDeleted',
        'identity.NodeRegistered',
        'identity.NodeDeregistered',
        'identity.BootstrapTokenIssued',
        'identity.BootstrapTokenRevoked',
        'identity.BootstrapTokenExpired',
        'managementfleet.ManagementClusterRegistered',
        'managementfleet.ProjectClusterAssigned',
        'managementfleet.ProjectNamespaceReady',
        'managementfleet.ProjectNamespaceTerminated'
    )),
    ADD CONSTRAINT outbox_events_aggregate_type_check CHECK (aggregate_type IN (
        'ProvisionedResource', 'Node', 'BootstrapToken', 'ManagementCluster', 'Project'
    ));
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
