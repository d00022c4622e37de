-- What every context stands on: the outbox, the meshes and the tenants.

CREATE TABLE plexsphere.outbox_events (
    id                 uuid        NOT NULL,
    sequence           bigint      GENERATED ALWAYS AS IDENTITY,
    aggregate_type     text        NOT NULL,
    aggregate_id       uuid        NOT NULL,
    aggregate_sequence bigint      NOT NULL,
    event_type         text        NOT NULL,
    payload            jsonb       NOT NULL,
    occurred_at        timestamptz NOT NULL,
    published_at       timestamptz,
    CONSTRAINT outbox_events_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_events_order_unique UNIQUE (aggregate_id, aggregate_sequence),
    CONSTRAINT outbox_events_sequence_check CHECK (aggregate_sequence > 0),
    CONSTRAINT outbox_events_payload_check CHECK (jsonb_typeof(payload) = 'object')
);
COMMENT ON COLUMN plexsphere.outbox_events.id IS 'UUIDv7; the dedupe id of the event';
CREATE INDEX outbox_events_unpublished_idx ON plexsphere.outbox_events (sequence)
    WHERE published_at IS NULL;

CREATE TABLE plexsphere.domains (
    id                  uuid        NOT NULL,
    name                text        NOT NULL,
    mesh_cidr           cidr        NOT NULL,
    signing_key_id      text        NOT NULL,
    signing_private_key bytea       NOT NULL,
    signing_public_key  bytea       NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT domains_pkey PRIMARY KEY (id),
    CONSTRAINT domains_name_unique UNIQUE (name),
    CONSTRAINT domains_signing_private_key_check CHECK (octet_length(signing_private_key) = 32),
    CONSTRAINT domains_signing_public_key_check CHECK (octet_length(signing_public_key) = 32)
);
COMMENT ON COLUMN plexsphere.domains.signing_private_key IS
    'Raw Ed25519 seed, not encrypted by us: protect the database and its backups accordingly';

CREATE TABLE plexsphere.projects (
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    domain_id  uuid        NOT NULL,
    namespace  text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT projects_pkey PRIMARY KEY (id),
    CONSTRAINT projects_name_unique UNIQUE (name),
    CONSTRAINT projects_namespace_unique UNIQUE (namespace),
    CONSTRAINT projects_domain_id_fkey FOREIGN KEY (domain_id)
        REFERENCES plexsphere.domains (id) ON DELETE RESTRICT
);
CREATE INDEX projects_domain_idx ON plexsphere.projects (domain_id);
