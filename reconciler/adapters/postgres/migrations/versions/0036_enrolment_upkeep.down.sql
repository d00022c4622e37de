LOCK TABLE
    plexsphere.provisioned_resources, plexsphere.bootstrap_tokens, plexsphere.projects,
    plexsphere.domains, plexsphere.mesh_free, plexsphere.nodes, plexsphere.registration_nonces,
    plexsphere.enrolment_audit
IN ACCESS EXCLUSIVE MODE;

COMMENT ON TABLE plexsphere.enrolment_audit IS
    'Denied registrations; ids only, never a value that a request carried';
DROP TABLE plexsphere.operator_audit;
DROP FUNCTION plexsphere.refuse_operator_audit_change;
DROP FUNCTION plexsphere.peers_of;
CREATE OR REPLACE FUNCTION plexsphere.take_out_node(resource_id uuid, event_id uuid) RETURNS void
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

CREATE OR REPLACE FUNCTION plexsphere.register_node(
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

DROP INDEX plexsphere.nodes_key_shared;
DROP INDEX plexsphere.mesh_free_order;
ALTER TABLE plexsphere.mesh_free
    DROP COLUMN rests_until,
    DROP CONSTRAINT mesh_free_pkey,
    ADD CONSTRAINT mesh_free_pkey PRIMARY KEY (domain_id, mesh_range, address),
    ADD CONSTRAINT mesh_free_address_unique UNIQUE (domain_id, address);

ALTER TABLE plexsphere.registration_nonces
    ADD CONSTRAINT registration_nonces_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    ADD CONSTRAINT registration_nonces_bootstrap_token_id_fkey FOREIGN KEY (bootstrap_token_id)
        REFERENCES plexsphere.bootstrap_tokens (id) ON DELETE RESTRICT;
ALTER TABLE plexsphere.nodes
    ADD CONSTRAINT nodes_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    ADD CONSTRAINT nodes_domain_id_fkey FOREIGN KEY (domain_id)
        REFERENCES plexsphere.domains (id) ON DELETE RESTRICT,
    ADD CONSTRAINT nodes_provisioned_resource_id_fkey FOREIGN KEY (provisioned_resource_id)
        REFERENCES plexsphere.provisioned_resources (id) ON DELETE RESTRICT;
