-- Bootstrap tokens, nodes and registrations (design, "Tokens").

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
    CONSTRAINT nodes_pkey PRIMARY KEY (id),
    CONSTRAINT nodes_bootstrap_token_unique UNIQUE (bootstrap_token_id),
    CONSTRAINT nodes_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    CONSTRAINT nodes_domain_id_fkey FOREIGN KEY (domain_id)
        REFERENCES plexsphere.domains (id) ON DELETE RESTRICT,
    CONSTRAINT nodes_provisioned_resource_id_fkey FOREIGN KEY (provisioned_resource_id)
        REFERENCES plexsphere.provisioned_resources (id) ON DELETE RESTRICT,
    CONSTRAINT nodes_bootstrap_token_id_fkey FOREIGN KEY (bootstrap_token_id)
        REFERENCES plexsphere.bootstrap_tokens (id) ON DELETE RESTRICT,
    CONSTRAINT nodes_public_key_check CHECK (octet_length(public_key) = 32),
    CONSTRAINT nodes_nsk_hash_check CHECK (octet_length(nsk_hash) = 32),
    CONSTRAINT nodes_mesh_ip_check CHECK (
        masklen(mesh_ip) = CASE family(mesh_ip) WHEN 4 THEN 32 ELSE 128 END
    )
);
CREATE UNIQUE INDEX nodes_mesh_ip_live ON plexsphere.nodes (domain_id, mesh_ip)
    WHERE deregistered_at IS NULL;
CREATE UNIQUE INDEX nodes_resource_live ON plexsphere.nodes (provisioned_resource_id)
    WHERE deregistered_at IS NULL;

CREATE TABLE plexsphere.registration_nonces (
    project_id         uuid        NOT NULL,
    nonce_hash         bytea       NOT NULL,
    bootstrap_token_id uuid        NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT registration_nonces_pkey PRIMARY KEY (project_id, nonce_hash),
    CONSTRAINT registration_nonces_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    CONSTRAINT registration_nonces_bootstrap_token_id_fkey FOREIGN KEY (bootstrap_token_id)
        REFERENCES plexsphere.bootstrap_tokens (id) ON DELETE RESTRICT,
    CONSTRAINT registration_nonces_nonce_hash_check CHECK (octet_length(nonce_hash) = 32)
);
COMMENT ON COLUMN plexsphere.registration_nonces.nonce_hash IS
    'SHA-256: a nonce may be 4096 characters, more than an index entry holds';

CREATE TABLE plexsphere.enrolment_audit (
    sequence           bigint      GENERATED ALWAYS AS IDENTITY,
    at                 timestamptz NOT NULL DEFAULT now(),
    code               text        NOT NULL,
    status             smallint    NOT NULL,
    bootstrap_token_id uuid,
    project_id         uuid,
    remote_address     text        NOT NULL,
    CONSTRAINT enrolment_audit_pkey PRIMARY KEY (sequence)
);
COMMENT ON TABLE plexsphere.enrolment_audit IS
    'Denied registrations; ids only, never a value that a request carried';
CREATE INDEX enrolment_audit_at_idx ON plexsphere.enrolment_audit (at);
