-- The events of tokens and nodes; those of tokens are told in the transaction of their change
-- whichever statement makes it.

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

CREATE FUNCTION plexsphere.tell_of_token() RETURNS trigger LANGUAGE plpgsql AS $$
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
    ) || plexsphere.names_of(node.provisioned_resource_id), at);
END $$;
