-- Attempts are counted by themselves: spec.retry falls when an XR is made anew, and a number that
-- falls told two attempts by one key, so that the later one's event was swallowed.
ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN retries integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT provisioned_resources_retries_check CHECK (retries >= 0);
COMMENT ON COLUMN plexsphere.provisioned_resources.retries IS
    'How often a raised spec.retry was accepted; never falls';
UPDATE plexsphere.provisioned_resources AS resource
SET retries = counted.retries
FROM (
    SELECT each.id, greatest(
        coalesce((each.accepted ->> 'retry')::integer, 0),
        coalesce(max(told.generation), 0) - each.generation
    ) AS retries
    FROM plexsphere.provisioned_resources AS each
    LEFT JOIN plexsphere.provisioned_resource_outbox_token AS told
        ON told.provisioned_resource_id = each.id
    GROUP BY each.id
) AS counted
WHERE counted.id = resource.id AND counted.retries > 0;

-- An operator takes a node out that nobody else will: who, which, and why.
ALTER TABLE plexsphere.operator_audit
    ADD COLUMN node_id uuid,
    ADD COLUMN reason text,
    DROP CONSTRAINT operator_audit_action_check,
    ADD CONSTRAINT operator_audit_action_check
        CHECK (action IN ('revoke-token', 'deregister-node')),
    ADD CONSTRAINT operator_audit_node_check CHECK (
        (action = 'deregister-node') = (node_id IS NOT NULL AND reason IS NOT NULL)
    ) NOT VALID,
    ADD CONSTRAINT operator_audit_reason_check CHECK (char_length(reason) BETWEEN 1 AND 512);
DO $$
BEGIN
    ALTER TABLE plexsphere.operator_audit VALIDATE CONSTRAINT operator_audit_node_check;
EXCEPTION WHEN check_violation THEN
    RAISE NOTICE 'plexsphere.operator_audit keeps entries that a way back took the node off';
END
$$;

-- Events say what their ids stand for, in the names that people gave.
CREATE FUNCTION plexsphere.names_of(its_id uuid) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT jsonb_strip_nulls(jsonb_build_object(
            'ProjectName', project.name, 'Namespace', resource.namespace,
            'OwnerKind', resource.xr_kind, 'OwnerName', resource.owner_name,
            'ResourceName', resource.resource,
            'BlueprintName', resource.accepted -> 'blueprint' ->> 'name',
            'CloudCredentialName', resource.accepted ->> 'cloudCredential',
            'ManagementClusterSlug', cluster.slug
        ))
        FROM plexsphere.provisioned_resources AS resource
        JOIN plexsphere.projects AS project ON project.id = resource.project_id
        JOIN plexsphere.management_clusters AS cluster
            ON cluster.id = resource.management_cluster_id
        WHERE resource.id = its_id
    ), '{}'::jsonb)
$$;
COMMENT ON FUNCTION plexsphere.names_of IS
    'What the ids of a resource''s events stand for; empty for one that is not stored';

CREATE OR REPLACE FUNCTION plexsphere.tell_of_node(node plexsphere.nodes, event_id uuid, event_sequence bigint, event_type text, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO plexsphere.outbox_events
        (id, aggregate_type, aggregate_id, aggregate_sequence, event_type, payload, occurred_at)
    VALUES (event_id, 'Node', node.id, event_sequence, event_type, jsonb_build_object(
        'EventID', event_id,
        'OccurredAt', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'NodeID', node.id, 'ProjectID', node.project_id, 'DomainID', node.domain_id,
        'ProvisionedResourceID', node.provisioned_resource_id,
        'BootstrapTokenID', node.bootstrap_token_id, 'MeshIP', host(node.mesh_ip)
    ) || plexsphere.names_of(node.provisioned_resource_id), at);
END $$;

CREATE OR REPLACE FUNCTION plexsphere.tell_of_token() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    data jsonb := jsonb_build_object(
        'BootstrapTokenID', NEW.id, 'ProvisionedResourceID', NEW.provisioned_resource_id,
        'ProjectID', NEW.project_id, 'Generation', NEW.generation,
        'ExpiresAt', to_char(NEW.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ) || plexsphere.names_of(NEW.provisioned_resource_id);
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

CREATE OR REPLACE FUNCTION plexsphere.register_node(its_project uuid, its_resource uuid, its_domain uuid, its_token uuid, new_id uuid, its_key bytea, secret_hash bytea, its_nonce bytea, its_pool cidr, came_id uuid, left_id uuid, lock_wait_ms integer) RETURNS SETOF inet
LANGUAGE plpgsql AS $$
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
    -- range goes on, it is judged anew and laid out further. What is in the way is looked for when something is: an earlier node of the resource leaves; an
    -- address that a process of before revision 0033 took is passed over.
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
