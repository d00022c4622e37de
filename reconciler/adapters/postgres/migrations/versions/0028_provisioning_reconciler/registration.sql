-- Registrations that wait for nobody but themselves, and whose work does not grow with the mesh
-- (docs/decisions/0013-hashing.md).

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
    -- Twice the silence after which a node counts as unreachable, and ten of its pulls.
    INSERT INTO plexsphere.mesh_free (domain_id, mesh_range, address, rests_until)
    SELECT gone.domain_id,
           CASE WHEN gone.mesh_ip <<= project.mesh_subrange
                THEN project.mesh_subrange ELSE domain.mesh_cidr END,
           gone.mesh_ip, gone.deregistered_at + interval '10 minutes'
    FROM plexsphere.projects AS project
    JOIN plexsphere.domains AS domain ON domain.id = project.domain_id
    WHERE project.id = gone.project_id
    ON CONFLICT DO NOTHING;
    PERFORM plexsphere.tell_of_node(
        gone, event_id, 2, 'identity.NodeDeregistered', gone.deregistered_at);
END $$;
COMMENT ON FUNCTION plexsphere.take_out_node IS
    'The caller holds the resource''s lock; no live node is success';

-- What nodes are told (domain/identity/peers.py); nothing in it needs an escape.
-- A plan of when there were few nodes would read the whole table long after.
CREATE FUNCTION plexsphere.peers_of(its_project uuid, its_resource uuid) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    RETURN (
        SELECT '[' || coalesce(string_agg(
            '{"node_id":"' || id || '","mesh_ip":"' || host(mesh_ip)
            || '","public_key":"' || encode(public_key, 'base64') || '"}', ','
        ), '') || ']'
        FROM (
            SELECT id, mesh_ip, public_key FROM plexsphere.nodes
            WHERE project_id = its_project AND deregistered_at IS NULL
              AND provisioned_resource_id <> its_resource
            ORDER BY id
        ) AS peer
    );
END $$;
COMMENT ON FUNCTION plexsphere.peers_of IS
    'The live nodes of a Project but those of one resource, by id, as a JSON array';

-- Each statement of a function sees what was committed before it began. So what follows the
-- lock sees all that whoever held the lock before has done, in one round trip.
CREATE FUNCTION plexsphere.register_node(
    its_project uuid, its_resource uuid, its_domain uuid, its_token uuid, new_id uuid,
    its_key bytea, secret_hash bytea, its_nonce bytea, its_pool cidr, came_id uuid, left_id uuid,
    lock_wait_ms integer
) RETURNS SETOF inet LANGUAGE plpgsql AS $$
DECLARE
    at       timestamptz;
    ip       inet;
    resource record;
    rests    timestamptz;
    made     boolean;
BEGIN
    PERFORM set_config('lock_timeout', lock_wait_ms::text, true);
    -- By its key alone: with the deletion as a condition, a plan of when the table was empty
    -- reads all resources that live.
    SELECT deletion_requested_at INTO resource FROM plexsphere.provisioned_resources
    WHERE id = its_resource
    FOR NO KEY UPDATE;
    IF NOT FOUND OR resource.deletion_requested_at IS NOT NULL THEN
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
    -- What has rested longest comes first, so that one that rests is the last resort: while the
    -- range goes on, it is judged anew and laid out further. What is in the way is looked for when
    -- something is: an earlier node of the resource leaves; an address that another range of the
    -- Domain gave out is passed over.
    FOR tries IN 1..100 LOOP
        IF ip IS NULL THEN
            DELETE FROM plexsphere.mesh_free
            WHERE ctid = (
                SELECT ctid FROM plexsphere.mesh_free
                WHERE domain_id = its_domain AND mesh_range = its_pool
                ORDER BY rests_until, address LIMIT 1
                FOR UPDATE SKIP LOCKED
            )
            RETURNING address, rests_until INTO ip, rests;
            EXIT WHEN ip IS NULL;
            IF rests > at AND EXISTS (
                SELECT FROM plexsphere.mesh_pools
                WHERE domain_id = its_domain AND mesh_range = its_pool
                  AND host(network(mesh_range))::inet + next_offset
                      < host(broadcast(mesh_range))::inet
            ) THEN
                RAISE EXCEPTION 'what lies ready still rests'
                    USING ERRCODE = 'serialization_failure';
            END IF;
        END IF;
        INSERT INTO plexsphere.nodes
            (id, project_id, domain_id, provisioned_resource_id, bootstrap_token_id, public_key,
             mesh_ip, nsk_hash, registered_at)
        VALUES
            (new_id, its_project, its_domain, its_resource, its_token, its_key, ip, secret_hash, at)
        ON CONFLICT DO NOTHING
        RETURNING true INTO made;
        EXIT WHEN made;
        IF EXISTS (
            SELECT FROM plexsphere.nodes
            WHERE provisioned_resource_id = its_resource AND deregistered_at IS NULL
        ) THEN
            PERFORM plexsphere.take_out_node(its_resource, left_id);
        ELSIF EXISTS (
            SELECT FROM plexsphere.nodes
            WHERE domain_id = its_domain AND mesh_ip = ip AND deregistered_at IS NULL
        ) THEN
            ip := NULL;
        ELSE
            EXIT;
        END IF;
    END LOOP;
    IF made IS NULL THEN
        RAISE EXCEPTION 'no address lies ready, or the key was taken'
            USING ERRCODE = 'serialization_failure';
    END IF;
    INSERT INTO plexsphere.registration_nonces (project_id, nonce_hash, bootstrap_token_id)
    VALUES (its_project, its_nonce, its_token);
    -- As tell_of_node, without a row that would have to be put together for it.
    INSERT INTO plexsphere.outbox_events
        (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
    VALUES (came_id, 'Node', new_id, 1, 'identity.NodeRegistered', format(
        '{"EventID":"%s","OccurredAt":"%s","NodeID":"%s","ProjectID":"%s","DomainID":"%s",'
        '"ProvisionedResourceID":"%s","BootstrapTokenID":"%s","MeshIP":"%s"}',
        came_id, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), new_id,
        its_project, its_domain, its_resource, its_token, host(ip)
    )::jsonb || plexsphere.names_of(its_resource), at);
    RETURN NEXT ip;
END $$;
COMMENT ON FUNCTION plexsphere.register_node IS
    'Writes what was judged, unless it no longer holds: then no row, and nothing is written';
