-- Bootstrap tokens, nodes, registrations and their addresses (design, "Tokens";
-- docs/decisions/0013-hashing.md).

CREATE TABLE plexsphere.bootstrap_tokens (
    id                      uuid        NOT NULL,
    project_id              uuid        NOT NULL,
    provisioned_resource_id uuid        NOT NULL,
    kind                    text        NOT NULL,
    env                     text        NOT NULL,
    generation              integer     NOT NULL,
    token_hash              bytea       NOT NULL,
    issued_at               timestamptz NOT NULL DEFAULT now(),
    expires_at              timestamptz NOT NULL,
    consumed_at             timestamptz,
    revoked_at              timestamptz,
    events                  bigint      NOT NULL DEFAULT 1,
    expiry_told             timestamptz,
    CONSTRAINT bootstrap_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT bootstrap_tokens_token_hash_unique UNIQUE (token_hash),
    CONSTRAINT bootstrap_tokens_generation_unique
        UNIQUE (provisioned_resource_id, generation),
    CONSTRAINT bootstrap_tokens_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    CONSTRAINT bootstrap_tokens_provisioned_resource_id_fkey
        FOREIGN KEY (provisioned_resource_id)
        REFERENCES plexsphere.provisioned_resources (id) ON DELETE RESTRICT,
    CONSTRAINT bootstrap_tokens_kind_check CHECK (kind IN ('node')),
    CONSTRAINT bootstrap_tokens_env_check CHECK (env ~ '^[a-z]+$'),
    CONSTRAINT bootstrap_tokens_generation_check CHECK (generation > 0),
    CONSTRAINT bootstrap_tokens_token_hash_check CHECK (octet_length(token_hash) = 32),
    CONSTRAINT bootstrap_tokens_window_check CHECK (
        issued_at < expires_at AND expires_at <= issued_at + interval '24 hours'
    ),
    CONSTRAINT bootstrap_tokens_spent_once_check CHECK (
        consumed_at IS NULL OR revoked_at IS NULL
    )
);
COMMENT ON COLUMN plexsphere.bootstrap_tokens.token_hash IS
    'SHA-256 of the whole token text, which holds 128 random bits or more';
COMMENT ON COLUMN plexsphere.bootstrap_tokens.events IS
    'Events told of it';
COMMENT ON COLUMN plexsphere.bootstrap_tokens.expiry_told IS
    'The end of the window whose passing was told; a window that is opened anew ends again';
CREATE INDEX bootstrap_tokens_expires_idx ON plexsphere.bootstrap_tokens (expires_at);

-- A node refers to its token alone: the token refers to its resource, that to its Project and the
-- Project to its Domain, each ON DELETE RESTRICT. References beside this chain would say the same
-- again, and make each registration lock rows of its Domain and Project with all others.
CREATE TABLE plexsphere.nodes (
    id                      uuid        NOT NULL,
    project_id              uuid        NOT NULL,
    domain_id               uuid        NOT NULL,
    provisioned_resource_id uuid        NOT NULL,
    bootstrap_token_id      uuid        NOT NULL,
    public_key              bytea       NOT NULL,
    mesh_ip                 inet        NOT NULL,
    nsk_hash                bytea       NOT NULL,
    registered_at           timestamptz NOT NULL DEFAULT now(),
    last_heartbeat_at       timestamptz,
    binary_version          text,
    deregistered_at         timestamptz,
    reported_at             timestamptz,
    previous_nsk_hash       bytea,
    readmitted              integer     NOT NULL DEFAULT 0,
    -- Of several answers to one registration nobody knows which arrived, however many they were.
    earlier_nsk_hashes      bytea[]     NOT NULL DEFAULT '{}',
    CONSTRAINT nodes_pkey PRIMARY KEY (id),
    CONSTRAINT nodes_bootstrap_token_unique UNIQUE (bootstrap_token_id),
    CONSTRAINT nodes_bootstrap_token_id_fkey FOREIGN KEY (bootstrap_token_id)
        REFERENCES plexsphere.bootstrap_tokens (id) ON DELETE RESTRICT,
    CONSTRAINT nodes_public_key_check CHECK (octet_length(public_key) = 32),
    CONSTRAINT nodes_nsk_hash_check CHECK (octet_length(nsk_hash) = 32),
    CONSTRAINT nodes_previous_nsk_hash_check CHECK (octet_length(previous_nsk_hash) = 32),
    CONSTRAINT nodes_earlier_nsk_hashes_check CHECK (cardinality(earlier_nsk_hashes) <= 20),
    CONSTRAINT nodes_readmitted_check CHECK (readmitted >= 0),
    CONSTRAINT nodes_mesh_ip_check CHECK (
        masklen(mesh_ip) = CASE family(mesh_ip) WHEN 4 THEN 32 ELSE 128 END
    )
);
COMMENT ON COLUMN plexsphere.nodes.reported_at IS
    'First authenticated call; from then on its registration cannot be repeated';
COMMENT ON COLUMN plexsphere.nodes.earlier_nsk_hashes IS
    'Keys that were answered before the previous one; good until the node reports, like that one';
CREATE UNIQUE INDEX nodes_mesh_ip_live ON plexsphere.nodes (domain_id, mesh_ip)
    WHERE deregistered_at IS NULL;
CREATE UNIQUE INDEX nodes_resource_live ON plexsphere.nodes (provisioned_resource_id)
    WHERE deregistered_at IS NULL;
CREATE INDEX nodes_project_live ON plexsphere.nodes (project_id, id)
    WHERE deregistered_at IS NULL;
CREATE UNIQUE INDEX nodes_public_key_live ON plexsphere.nodes (domain_id, public_key)
    WHERE deregistered_at IS NULL;

-- A nonce is written with its node, so it needs no references of its own.
CREATE TABLE plexsphere.registration_nonces (
    project_id         uuid        NOT NULL,
    nonce_hash         bytea       NOT NULL,
    bootstrap_token_id uuid        NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT registration_nonces_pkey PRIMARY KEY (project_id, nonce_hash),
    CONSTRAINT registration_nonces_nonce_hash_check CHECK (octet_length(nonce_hash) = 32)
);
COMMENT ON COLUMN plexsphere.registration_nonces.nonce_hash IS
    'SHA-256: a nonce may be 4096 characters, more than an index entry holds';
CREATE INDEX registration_nonces_token_idx
    ON plexsphere.registration_nonces (bootstrap_token_id);

ALTER TABLE plexsphere.projects ADD COLUMN mesh_subrange cidr;
COMMENT ON COLUMN plexsphere.projects.mesh_subrange IS
    'Part of the Domain''s range that this Project alone gets addresses from; no kind sets it yet';

CREATE TABLE plexsphere.mesh_pools (
    domain_id   uuid   NOT NULL,
    mesh_range  cidr   NOT NULL,
    next_offset bigint NOT NULL DEFAULT 1,
    CONSTRAINT mesh_pools_pkey PRIMARY KEY (domain_id, mesh_range),
    CONSTRAINT mesh_pools_domain_id_fkey FOREIGN KEY (domain_id)
        REFERENCES plexsphere.domains (id) ON DELETE RESTRICT,
    CONSTRAINT mesh_pools_next_offset_check CHECK (next_offset > 0)
);
COMMENT ON COLUMN plexsphere.mesh_pools.next_offset IS
    'First address of the range that never lay in mesh_free, counted from the network''s own';

CREATE TABLE plexsphere.mesh_free (
    domain_id   uuid        NOT NULL,
    mesh_range  cidr        NOT NULL,
    address     inet        NOT NULL,
    rests_until timestamptz NOT NULL DEFAULT '-infinity',
    CONSTRAINT mesh_free_pkey PRIMARY KEY (domain_id, address)
);
COMMENT ON TABLE plexsphere.mesh_free IS
    'Addresses that lie ready; a registration takes one, passing over what others take';
COMMENT ON COLUMN plexsphere.mesh_free.rests_until IS
    'Until then only a node for which nothing else is left gets it: peers may not know yet';
CREATE INDEX mesh_free_order ON plexsphere.mesh_free (domain_id, mesh_range, rests_until, address);
