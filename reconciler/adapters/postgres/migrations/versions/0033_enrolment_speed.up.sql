-- Registrations that wait for nobody but themselves: addresses that lie ready, one live node
-- per key, and what a repetition of a registration was (docs/decisions/0013).

ALTER TABLE plexsphere.nodes
    ADD COLUMN reported_at       timestamptz,
    ADD COLUMN previous_nsk_hash bytea,
    ADD COLUMN readmitted        integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT nodes_previous_nsk_hash_check CHECK (octet_length(previous_nsk_hash) = 32),
    ADD CONSTRAINT nodes_readmitted_check CHECK (readmitted >= 0);
COMMENT ON COLUMN plexsphere.nodes.reported_at IS
    'First authenticated call; from then on its registration cannot be repeated';
UPDATE plexsphere.nodes SET reported_at = last_heartbeat_at;
-- Before this revision a copied machine could bring its key a second time. Such nodes stay.
ALTER TABLE plexsphere.nodes ADD COLUMN key_shared boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN plexsphere.nodes.key_shared IS
    'Another live node had the key when keys became unique';
UPDATE plexsphere.nodes AS node SET key_shared = true
WHERE deregistered_at IS NULL AND EXISTS (
    SELECT FROM plexsphere.nodes AS other
    WHERE other.domain_id = node.domain_id AND other.public_key = node.public_key
      AND other.deregistered_at IS NULL AND other.id <> node.id
);
CREATE UNIQUE INDEX nodes_public_key_live ON plexsphere.nodes (domain_id, public_key)
    WHERE deregistered_at IS NULL AND NOT key_shared;
CREATE INDEX nodes_project_live ON plexsphere.nodes (project_id, id)
    WHERE deregistered_at IS NULL;
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
    domain_id  uuid NOT NULL,
    mesh_range cidr NOT NULL,
    address    inet NOT NULL,
    CONSTRAINT mesh_free_pkey PRIMARY KEY (domain_id, mesh_range, address),
    CONSTRAINT mesh_free_address_unique UNIQUE (domain_id, address)
);
COMMENT ON TABLE plexsphere.mesh_free IS
    'Addresses that lie ready; a registration takes one, passing over what others take';

ALTER TABLE plexsphere.enrolment_audit
    ADD COLUMN node_id uuid,
    ADD COLUMN detail  text,
    ADD CONSTRAINT enrolment_audit_detail_check CHECK (
        detail IN ('other_key', 'other_nonce', 'reported', 'left', 'too_often')
    );

-- A node comes once and leaves once, so its events are 1 and 2 and need no look-up.
CREATE FUNCTION plexsphere.tell_of_node(
    node plexsphere.nodes, event_id uuid, event_sequence bigint, event_type text, at timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO plexsphere.outbox_events
        (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
    VALUES (event_id, 'Node', node.id, event_sequence, event_type, jsonb_build_object(
        'EventID', event_id,
        'OccurredAt', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'NodeID', node.id, 'ProjectID', node.project_id, 'DomainID', node.domain_id,
        'ProvisionedResourceID', node.provisioned_resource_id,
        'BootstrapTokenID', node.bootstrap_token_id, 'MeshIP', host(node.mesh_ip)
    ), at);
END $$;

CREATE FUNCTION plexsphere.take_out_node(resource_id uuid, event_id uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    gone plexsphere.nodes;
BEGIN
    UPDATE plexsphere.nodes SET deregistered_at = clock_timestamp()
    WHERE provisioned_resource_id = resource_id AND deregistered_at IS NULL
    RETURNING * INTO gone;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO plexsphere.mesh_free (domain_id, mesh_range, address)
    SELECT gone.domain_id,
           CASE WHEN gone.mesh_ip <<= project.mesh_subrange
                THEN project.mesh_subrange ELSE domain.mesh_cidr END,
           gone.mesh_ip
    FROM plexsphere.projects AS project
    JOIN plexsphere.domains AS domain ON domain.id = project.domain_id
    WHERE project.id = gone.project_id
    ON CONFLICT DO NOTHING;
    PERFORM plexsphere.tell_of_node(
        gone, event_id, 2, 'identity.NodeDeregistered', gone.deregistered_at);
END $$;
COMMENT ON FUNCTION plexsphere.take_out_node IS
    'The caller holds the resource''s lock; no live node is success';

-- Each statement of a function sees what was committed before it began. So what follows the
-- lock sees all that whoever held the lock before has done, in one round trip.
CREATE FUNCTION plexsphere.register_node(
    its_project uuid, its_resource uuid, its_domain uuid, its_token uuid, new_id uuid,
    its_key bytea, secret_hash bytea, its_nonce bytea, its_pool cidr, came_id uuid, left_id uuid,
    lock_wait_ms integer
) RETURNS SETOF inet LANGUAGE plpgsql AS $$
DECLARE
    at   timestamptz;
    ip   inet;
    node plexsphere.nodes;
BEGIN
    PERFORM set_config('lock_timeout', lock_wait_ms::text, true);
    PERFORM FROM plexsphere.provisioned_resources
    WHERE id = its_resource AND deletion_requested_at IS NULL
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    at := clock_timestamp();
    UPDATE plexsphere.bootstrap_tokens SET consumed_at = at
    WHERE id = its_token AND consumed_at IS NULL AND revoked_at IS NULL AND expires_at > at;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE plexsphere.bootstrap_tokens SET revoked_at = at
    WHERE provisioned_resource_id = its_resource AND id <> its_token
      AND consumed_at IS NULL AND revoked_at IS NULL;
    IF EXISTS (
        SELECT FROM plexsphere.nodes
        WHERE provisioned_resource_id = its_resource AND deregistered_at IS NULL
    ) THEN
        PERFORM plexsphere.take_out_node(its_resource, left_id);
    END IF;
    -- A process of before this revision takes addresses that lie ready here.
    FOR tries IN 1..100 LOOP
        SELECT address INTO ip FROM plexsphere.mesh_free
        WHERE domain_id = its_domain AND mesh_range = its_pool
        ORDER BY address LIMIT 1
        FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no address lies ready' USING ERRCODE = 'serialization_failure';
        END IF;
        DELETE FROM plexsphere.mesh_free WHERE domain_id = its_domain AND address = ip;
        EXIT WHEN NOT EXISTS (
            SELECT FROM plexsphere.nodes
            WHERE domain_id = its_domain AND mesh_ip = ip AND deregistered_at IS NULL
        );
        ip := NULL;
    END LOOP;
    IF ip IS NULL THEN
        RAISE EXCEPTION 'no address lies ready' USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO plexsphere.nodes
        (id, project_id, domain_id, provisioned_resource_id, bootstrap_token_id, public_key,
         mesh_ip, nsk_hash, registered_at)
    VALUES (new_id, its_project, its_domain, its_resource, its_token, its_key, ip, secret_hash, at)
    RETURNING * INTO node;
    INSERT INTO plexsphere.registration_nonces (project_id, nonce_hash, bootstrap_token_id)
    VALUES (its_project, its_nonce, its_token);
    PERFORM plexsphere.tell_of_node(node, came_id, 1, 'identity.NodeRegistered', at);
    RETURN NEXT ip;
END $$;
COMMENT ON FUNCTION plexsphere.register_node IS
    'Writes what was judged, unless it no longer holds: then no row, and nothing is written';
