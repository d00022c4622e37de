-- What the migrations make, for people to read; written by `make generate`.
-- PostgreSQL database dump

-- Name: plexsphere; Type: SCHEMA; Schema: -; Owner: -

CREATE SCHEMA plexsphere;

-- Name: address_block(text); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.address_block(address text) RETURNS cidr
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
DECLARE
    parsed inet;
BEGIN
    parsed := split_part(address, '%', 1)::inet;
    IF parsed << '::ffff:0:0/96' THEN
        parsed := '0.0.0.0'::inet + (parsed - '::ffff:0:0'::inet);
    END IF;
    RETURN network(set_masklen(parsed, CASE family(parsed) WHEN 4 THEN 24 ELSE 48 END));
EXCEPTION WHEN invalid_text_representation THEN
    RETURN '0.0.0.0/32';
END $$;

-- Name: FUNCTION address_block(address text); Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON FUNCTION plexsphere.address_block(address text) IS 'Network that an address counts for, IPv4 /24 or IPv6 /48; 0.0.0.0/32 for what is none';

-- Name: count_placement(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.count_placement() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.events := CASE WHEN NEW.namespace_phase = 'Ready' THEN 2 ELSE 1 END;
    RETURN NEW;
END $$;

-- Name: names_of(uuid); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.names_of(its_id uuid) RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
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

-- Name: FUNCTION names_of(its_id uuid); Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON FUNCTION plexsphere.names_of(its_id uuid) IS 'What the ids of a resource''s events stand for; empty for one that is not stored';

-- Name: new_event_id(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.new_event_id() RETURNS uuid
    LANGUAGE sql
    AS $$
    SELECT encode(set_bit(set_bit(overlay(
        uuid_send(gen_random_uuid())
        PLACING substring(
            int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3
        )
        FROM 1 FOR 6
    ), 52, 1), 53, 1), 'hex')::uuid
$$;

-- Name: peers_of(uuid, uuid); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.peers_of(its_project uuid, its_resource uuid) RETURNS text
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
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

-- Name: FUNCTION peers_of(its_project uuid, its_resource uuid); Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON FUNCTION plexsphere.peers_of(its_project uuid, its_resource uuid) IS 'The live nodes of a Project but those of one resource, by id, as a JSON array';

-- Name: refuse_audit_change(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.refuse_audit_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'plexsphere.broker_audit is append-only' USING ERRCODE = '42501';
END
$$;

-- Name: refuse_enrolment_evidence_change(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.refuse_enrolment_evidence_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    counted text[] := '{times,last_at,last_address}';
BEGIN
    IF TG_OP = 'UPDATE' AND TG_LEVEL = 'ROW' THEN
        IF NEW.times > OLD.times AND NEW.last_at >= OLD.last_at
            AND to_jsonb(NEW) - counted = to_jsonb(OLD) - counted
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'plexsphere.enrolment_evidence is append-only' USING ERRCODE = '42501';
END
$$;

-- Name: refuse_event_audit_change(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.refuse_event_audit_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'plexsphere.event_audit is append-only' USING ERRCODE = '42501';
END
$$;

-- Name: refuse_operator_audit_change(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.refuse_operator_audit_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'plexsphere.operator_audit is append-only' USING ERRCODE = '42501';
END
$$;

-- Name: register_node(uuid, uuid, uuid, uuid, uuid, bytea, bytea, bytea, cidr, uuid, uuid, integer); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.register_node(its_project uuid, its_resource uuid, its_domain uuid, its_token uuid, new_id uuid, its_key bytea, secret_hash bytea, its_nonce bytea, its_pool cidr, came_id uuid, left_id uuid, lock_wait_ms integer) RETURNS SETOF inet
    LANGUAGE plpgsql
    AS $$
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

-- Name: FUNCTION register_node(its_project uuid, its_resource uuid, its_domain uuid, its_token uuid, new_id uuid, its_key bytea, secret_hash bytea, its_nonce bytea, its_pool cidr, came_id uuid, left_id uuid, lock_wait_ms integer); Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON FUNCTION plexsphere.register_node(its_project uuid, its_resource uuid, its_domain uuid, its_token uuid, new_id uuid, its_key bytea, secret_hash bytea, its_nonce bytea, its_pool cidr, came_id uuid, left_id uuid, lock_wait_ms integer) IS 'Writes what was judged, unless it no longer holds: then no row, and nothing is written';

-- Name: take_out_node(uuid, uuid); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.take_out_node(resource_id uuid, event_id uuid) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

-- Name: FUNCTION take_out_node(resource_id uuid, event_id uuid); Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON FUNCTION plexsphere.take_out_node(resource_id uuid, event_id uuid) IS 'The caller holds the resource''s lock; no live node is success';

-- Name: tell(text, uuid, bigint, text, timestamp with time zone, jsonb); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.tell(its_type text, its_id uuid, its_sequence bigint, event text, at timestamp with time zone, data jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

-- Name: FUNCTION tell(its_type text, its_id uuid, its_sequence bigint, event text, at timestamp with time zone, data jsonb); Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON FUNCTION plexsphere.tell(its_type text, its_id uuid, its_sequence bigint, event text, at timestamp with time zone, data jsonb) IS 'The caller holds the lock of the row whose counter gave the sequence';

-- Name: tell_of_cluster(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.tell_of_cluster() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM plexsphere.tell('ManagementCluster', NEW.id, 1,
        'managementfleet.ManagementClusterRegistered', NEW.created_at, jsonb_build_object(
            'ManagementClusterID', NEW.id, 'Name', NEW.name, 'Slug', NEW.slug,
            'Region', coalesce(NEW.region, '')
        ));
    RETURN NULL;
END $$;

-- Name: nodes; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.nodes (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    domain_id uuid NOT NULL,
    provisioned_resource_id uuid NOT NULL,
    bootstrap_token_id uuid NOT NULL,
    public_key bytea NOT NULL,
    mesh_ip inet NOT NULL,
    nsk_hash bytea NOT NULL,
    registered_at timestamp with time zone DEFAULT now() NOT NULL,
    last_heartbeat_at timestamp with time zone,
    binary_version text,
    deregistered_at timestamp with time zone,
    reported_at timestamp with time zone,
    previous_nsk_hash bytea,
    readmitted integer DEFAULT 0 NOT NULL,
    earlier_nsk_hashes bytea[] DEFAULT '{}'::bytea[] NOT NULL,
    CONSTRAINT nodes_earlier_nsk_hashes_check CHECK ((cardinality(earlier_nsk_hashes) <= 20)),
    CONSTRAINT nodes_mesh_ip_check CHECK ((masklen(mesh_ip) =
CASE family(mesh_ip)
    WHEN 4 THEN 32
    ELSE 128
END)),
    CONSTRAINT nodes_nsk_hash_check CHECK ((octet_length(nsk_hash) = 32)),
    CONSTRAINT nodes_previous_nsk_hash_check CHECK ((octet_length(previous_nsk_hash) = 32)),
    CONSTRAINT nodes_public_key_check CHECK ((octet_length(public_key) = 32)),
    CONSTRAINT nodes_readmitted_check CHECK ((readmitted >= 0))
);

-- Name: COLUMN nodes.reported_at; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.nodes.reported_at IS 'First authenticated call; from then on its registration cannot be repeated';

-- Name: COLUMN nodes.earlier_nsk_hashes; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.nodes.earlier_nsk_hashes IS 'Keys that were answered before the previous one; good until the node reports, like that one';

-- Name: tell_of_node(plexsphere.nodes, uuid, bigint, text, timestamp with time zone); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.tell_of_node(node plexsphere.nodes, event_id uuid, event_sequence bigint, event_type text, at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

-- Name: tell_of_placement(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.tell_of_placement() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

-- Name: tell_of_token(); Type: FUNCTION; Schema: plexsphere; Owner: -

CREATE FUNCTION plexsphere.tell_of_token() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

-- Name: bootstrap_tokens; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.bootstrap_tokens (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    provisioned_resource_id uuid NOT NULL,
    kind text NOT NULL,
    env text NOT NULL,
    generation integer NOT NULL,
    token_hash bytea NOT NULL,
    issued_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    consumed_at timestamp with time zone,
    revoked_at timestamp with time zone,
    events bigint DEFAULT 1 NOT NULL,
    expiry_told timestamp with time zone,
    CONSTRAINT bootstrap_tokens_env_check CHECK ((env ~ '^[a-z]+$'::text)),
    CONSTRAINT bootstrap_tokens_generation_check CHECK ((generation > 0)),
    CONSTRAINT bootstrap_tokens_kind_check CHECK ((kind = 'node'::text)),
    CONSTRAINT bootstrap_tokens_spent_once_check CHECK (((consumed_at IS NULL) OR (revoked_at IS NULL))),
    CONSTRAINT bootstrap_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32)),
    CONSTRAINT bootstrap_tokens_window_check CHECK (((issued_at < expires_at) AND (expires_at <= (issued_at + '24:00:00'::interval))))
);

-- Name: COLUMN bootstrap_tokens.token_hash; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.bootstrap_tokens.token_hash IS 'SHA-256 of the whole token text, which holds 128 random bits or more';

-- Name: COLUMN bootstrap_tokens.events; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.bootstrap_tokens.events IS 'Events told of it';

-- Name: COLUMN bootstrap_tokens.expiry_told; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.bootstrap_tokens.expiry_told IS 'The end of the window whose passing was told; a window that is opened anew ends again';

-- Name: broker_audit; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.broker_audit (
    id uuid NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    management_cluster_id uuid NOT NULL,
    project_id uuid NOT NULL,
    provisioned_resource_id uuid NOT NULL,
    namespace text NOT NULL,
    record_name text NOT NULL,
    action text NOT NULL,
    reason text NOT NULL,
    actor text,
    CONSTRAINT broker_audit_action_check CHECK ((action = ANY (ARRAY['force-release'::text, 'unreleased-substrate-gone'::text, 'recreate'::text, 'retry'::text]))),
    CONSTRAINT broker_audit_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 1024)))
);

-- Name: TABLE broker_audit; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.broker_audit IS 'Append-only; refers to no table, so that it outlives what it speaks of';

-- Name: COLUMN broker_audit.actor; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.broker_audit.actor IS 'Field manager that asked for it, when known; the API server''s audit log has the user';

-- Name: domains; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.domains (
    id uuid NOT NULL,
    name text NOT NULL,
    mesh_cidr cidr NOT NULL,
    signing_key_id text NOT NULL,
    signing_private_key bytea NOT NULL,
    signing_public_key bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT domains_signing_private_key_check CHECK ((octet_length(signing_private_key) = 32)),
    CONSTRAINT domains_signing_public_key_check CHECK ((octet_length(signing_public_key) = 32))
);

-- Name: COLUMN domains.signing_private_key; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.domains.signing_private_key IS 'Raw Ed25519 seed, not encrypted by us: protect the database and its backups accordingly';

-- Name: driver_leases; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.driver_leases (
    key uuid NOT NULL,
    holder text NOT NULL,
    fence bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT driver_leases_fence_check CHECK ((fence >= 1)),
    CONSTRAINT driver_leases_holder_check CHECK (((char_length(holder) >= 1) AND (char_length(holder) <= 128)))
)
WITH (fillfactor='10', autovacuum_vacuum_threshold='200', autovacuum_vacuum_scale_factor='0');

-- Name: TABLE driver_leases; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.driver_leases IS 'One row per management cluster; renewed every few seconds, locked by each write of its driver';

-- Name: COLUMN driver_leases.fence; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.driver_leases.fence IS 'Counted up by a takeover. In a unique key, so that FOR KEY SHARE holds a takeover off';

-- Name: driver_thaws; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.driver_thaws (
    id bigint NOT NULL,
    management_cluster_id uuid NOT NULL,
    thawed_at timestamp with time zone DEFAULT now() NOT NULL,
    reason text NOT NULL,
    actor text DEFAULT SESSION_USER NOT NULL,
    CONSTRAINT driver_thaws_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 512)))
);

-- Name: TABLE driver_thaws; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.driver_thaws IS 'Who declared with `broker thaw` that what a frozen driver sees is true, and why';

-- Name: driver_thaws_id_seq; Type: SEQUENCE; Schema: plexsphere; Owner: -

ALTER TABLE plexsphere.driver_thaws ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME plexsphere.driver_thaws_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: enrolment_audit; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.enrolment_audit (
    sequence bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    code text NOT NULL,
    status smallint NOT NULL,
    bootstrap_token_id uuid,
    project_id uuid,
    remote_address text NOT NULL,
    node_id uuid,
    detail text,
    block cidr GENERATED ALWAYS AS (plexsphere.address_block(remote_address)) STORED,
    CONSTRAINT enrolment_audit_detail_check CHECK ((detail = ANY (ARRAY['other_key'::text, 'other_nonce'::text, 'reported'::text, 'left'::text, 'too_often'::text])))
);

-- Name: TABLE enrolment_audit; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.enrolment_audit IS 'Denials of what carried no known token, a fair share of each address block; ids only, never a value that was asked with';

-- Name: enrolment_audit_sequence_seq; Type: SEQUENCE; Schema: plexsphere; Owner: -

ALTER TABLE plexsphere.enrolment_audit ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME plexsphere.enrolment_audit_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: enrolment_evidence; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.enrolment_evidence (
    sequence bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    code text NOT NULL,
    status smallint NOT NULL,
    bootstrap_token_id uuid NOT NULL,
    provisioned_resource_id uuid,
    project_id uuid,
    node_id uuid,
    detail text,
    remote_address text NOT NULL,
    block cidr NOT NULL,
    times bigint DEFAULT 1 NOT NULL,
    last_at timestamp with time zone DEFAULT now() NOT NULL,
    last_address text NOT NULL,
    CONSTRAINT enrolment_evidence_detail_check CHECK ((detail = ANY (ARRAY['other_key'::text, 'other_nonce'::text, 'reported'::text, 'left'::text, 'too_often'::text]))),
    CONSTRAINT enrolment_evidence_times_check CHECK ((times > 0))
);

-- Name: TABLE enrolment_evidence; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.enrolment_evidence IS 'Denials of known tokens, and nodes given another key (readmitted); append-only but for the count and the last time; refers to no table, so that it outlives what it speaks of';

-- Name: COLUMN enrolment_evidence.project_id; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.enrolment_evidence.project_id IS 'Project that the first request named';

-- Name: COLUMN enrolment_evidence.block; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.enrolment_evidence.block IS 'Network of the address; 0.0.0.0/0 for all further ones once a token has its share of entries';

-- Name: COLUMN enrolment_evidence.times; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.enrolment_evidence.times IS 'How often it happened, from remote_address at first and last_address at last';

-- Name: enrolment_evidence_sequence_seq; Type: SEQUENCE; Schema: plexsphere; Owner: -

ALTER TABLE plexsphere.enrolment_evidence ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME plexsphere.enrolment_evidence_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: event_audit; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.event_audit (
    sequence bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    reason text NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    aggregate_id uuid NOT NULL,
    CONSTRAINT event_audit_action_check CHECK ((action = ANY (ARRAY['replay'::text, 'skip'::text]))),
    CONSTRAINT event_audit_actor_check CHECK (((char_length(actor) >= 1) AND (char_length(actor) <= 256))),
    CONSTRAINT event_audit_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 1024)))
);

-- Name: TABLE event_audit; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.event_audit IS 'Append-only; refers to no table, so that it outlives what it speaks of';

-- Name: COLUMN event_audit.actor; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.event_audit.actor IS 'Operating system''s user and database''s user of who ran the command';

-- Name: event_audit_sequence_seq; Type: SEQUENCE; Schema: plexsphere; Owner: -

ALTER TABLE plexsphere.event_audit ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME plexsphere.event_audit_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: management_clusters; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.management_clusters (
    id uuid NOT NULL,
    name text NOT NULL,
    slug text NOT NULL,
    region text,
    kubeconfig_secret_ref text,
    status text DEFAULT 'active'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT management_clusters_slug_check CHECK ((slug <> ''::text)),
    CONSTRAINT management_clusters_times_check CHECK ((created_at <= updated_at))
);

-- Name: mesh_free; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.mesh_free (
    domain_id uuid NOT NULL,
    mesh_range cidr NOT NULL,
    address inet NOT NULL,
    rests_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL
);

-- Name: TABLE mesh_free; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.mesh_free IS 'Addresses that lie ready; a registration takes one, passing over what others take';

-- Name: COLUMN mesh_free.rests_until; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.mesh_free.rests_until IS 'Until then only a node for which nothing else is left gets it: peers may not know yet';

-- Name: mesh_pools; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.mesh_pools (
    domain_id uuid NOT NULL,
    mesh_range cidr NOT NULL,
    next_offset bigint DEFAULT 1 NOT NULL,
    CONSTRAINT mesh_pools_next_offset_check CHECK ((next_offset > 0))
);

-- Name: COLUMN mesh_pools.next_offset; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.mesh_pools.next_offset IS 'First address of the range that never lay in mesh_free, counted from the network''s own';

-- Name: operator_audit; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.operator_audit (
    sequence bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    project_id uuid NOT NULL,
    provisioned_resource_id uuid NOT NULL,
    bootstrap_token_id uuid NOT NULL,
    node_id uuid,
    reason text,
    CONSTRAINT operator_audit_action_check CHECK ((action = ANY (ARRAY['revoke-token'::text, 'deregister-node'::text]))),
    CONSTRAINT operator_audit_actor_check CHECK (((char_length(actor) >= 1) AND (char_length(actor) <= 1024))),
    CONSTRAINT operator_audit_node_check CHECK (((action = 'deregister-node'::text) = ((node_id IS NOT NULL) AND (reason IS NOT NULL)))),
    CONSTRAINT operator_audit_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 512)))
);

-- Name: TABLE operator_audit; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.operator_audit IS 'Append-only; refers to no table, so that it outlives what it speaks of';

-- Name: COLUMN operator_audit.actor; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.operator_audit.actor IS 'The user''s name as the API server''s TokenReview gives it';

-- Name: operator_audit_sequence_seq; Type: SEQUENCE; Schema: plexsphere; Owner: -

ALTER TABLE plexsphere.operator_audit ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME plexsphere.operator_audit_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: orphans; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.orphans (
    management_cluster_id uuid NOT NULL,
    finding text NOT NULL,
    subject text NOT NULL,
    detail text NOT NULL,
    found_at timestamp with time zone DEFAULT now() NOT NULL,
    gone_at timestamp with time zone,
    CONSTRAINT orphans_finding_check CHECK ((finding = ANY (ARRAY['substrate-without-record'::text, 'record-missing'::text, 'node-of-deleted'::text, 'kind-unlisted'::text]))),
    CONSTRAINT orphans_subject_check CHECK ((subject <> ''::text))
);

-- Name: TABLE orphans; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON TABLE plexsphere.orphans IS 'Findings of the orphan sweep; gone_at is null while one stands';

-- Name: outbox_events; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.outbox_events (
    id uuid NOT NULL,
    sequence bigint NOT NULL,
    aggregate_type text NOT NULL,
    aggregate_id uuid NOT NULL,
    aggregate_sequence bigint NOT NULL,
    event_type text NOT NULL,
    payload jsonb NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    available_at timestamp with time zone,
    parked_at timestamp with time zone,
    skipped_at timestamp with time zone,
    last_error text,
    CONSTRAINT outbox_events_aggregate_type_check CHECK ((aggregate_type = ANY (ARRAY['ProvisionedResource'::text, 'Node'::text, 'BootstrapToken'::text, 'ManagementCluster'::text, 'Project'::text]))),
    CONSTRAINT outbox_events_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT outbox_events_event_type_check CHECK ((event_type = ANY (ARRAY['broker.ProvisionedResourceRequested'::text, 'broker.ProvisionedResourceReady'::text, 'broker.ProvisionedResourceFailed'::text, 'broker.ProvisionedResourceDeleting'::text, 'broker.ProvisionedResourceDeleted'::text, 'identity.NodeRegistered'::text, 'identity.NodeDeregistered'::text, 'identity.BootstrapTokenIssued'::text, 'identity.BootstrapTokenRevoked'::text, 'identity.BootstrapTokenExpired'::text, 'managementfleet.ManagementClusterRegistered'::text, 'managementfleet.ProjectClusterAssigned'::text, 'managementfleet.ProjectNamespaceReady'::text, 'managementfleet.ProjectNamespaceTerminated'::text]))),
    CONSTRAINT outbox_events_last_error_check CHECK (((char_length(last_error) >= 1) AND (char_length(last_error) <= 256))),
    CONSTRAINT outbox_events_parked_check CHECK (((parked_at IS NULL) OR (published_at IS NULL))),
    CONSTRAINT outbox_events_payload_check CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT outbox_events_sequence_check CHECK ((aggregate_sequence > 0)),
    CONSTRAINT outbox_events_skipped_check CHECK (((skipped_at IS NULL) OR (published_at IS NOT NULL)))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');

-- Name: COLUMN outbox_events.id; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.outbox_events.id IS 'UUIDv7; the dedupe id of the event';

-- Name: COLUMN outbox_events.attempts; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.outbox_events.attempts IS 'Failures while the sink took other events; since the last replay';

-- Name: COLUMN outbox_events.available_at; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.outbox_events.available_at IS 'Not before; NULL is at once';

-- Name: COLUMN outbox_events.parked_at; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.outbox_events.parked_at IS 'Given up until an operator replays or skips it; the later events of its aggregate wait';

-- Name: COLUMN outbox_events.skipped_at; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.outbox_events.skipped_at IS 'An operator let it go unpublished; published_at is set for the order''s sake';

-- Name: COLUMN outbox_events.last_error; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.outbox_events.last_error IS 'Class or status of the last failure, never a body';

-- Name: outbox_events_sequence_seq; Type: SEQUENCE; Schema: plexsphere; Owner: -

ALTER TABLE plexsphere.outbox_events ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME plexsphere.outbox_events_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

-- Name: project_cluster_assignments; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.project_cluster_assignments (
    project_id uuid NOT NULL,
    management_cluster_id uuid NOT NULL,
    region text,
    namespace_name text NOT NULL,
    namespace_phase text NOT NULL,
    assigned_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    events bigint DEFAULT 0 NOT NULL,
    CONSTRAINT project_cluster_assignments_phase_check CHECK ((namespace_phase = ANY (ARRAY['Pending'::text, 'Provisioning'::text, 'Ready'::text, 'Degraded'::text, 'Terminating'::text, 'Deleted'::text]))),
    CONSTRAINT project_cluster_assignments_times_check CHECK ((assigned_at <= updated_at))
);

-- Name: COLUMN project_cluster_assignments.events; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.project_cluster_assignments.events IS 'Events told of the Project''s placement and namespace';

-- Name: projects; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.projects (
    id uuid NOT NULL,
    name text NOT NULL,
    domain_id uuid NOT NULL,
    namespace text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    mesh_subrange cidr
);

-- Name: COLUMN projects.mesh_subrange; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.projects.mesh_subrange IS 'Part of the Domain''s range that this Project alone gets addresses from; no kind sets it yet';

-- Name: provisioned_resource_outbox_token; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.provisioned_resource_outbox_token (
    provisioned_resource_id uuid CONSTRAINT provisioned_resource_outbox_to_provisioned_resource_id_not_null NOT NULL,
    event_type text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    CONSTRAINT provisioned_resource_outbox_token_event_type_check CHECK ((event_type = ANY (ARRAY['broker.ProvisionedResourceRequested'::text, 'broker.ProvisionedResourceReady'::text, 'broker.ProvisionedResourceFailed'::text, 'broker.ProvisionedResourceDeleting'::text, 'broker.ProvisionedResourceDeleted'::text])))
);

-- Name: provisioned_resources; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.provisioned_resources (
    id uuid NOT NULL,
    resource_id uuid NOT NULL,
    project_id uuid NOT NULL,
    blueprint_version_id uuid NOT NULL,
    cloud_credential_id uuid NOT NULL,
    status text NOT NULL,
    xr_name text NOT NULL,
    bootstrap_token_id uuid,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deletion_requested_at timestamp with time zone,
    management_cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    xr_group text NOT NULL,
    xr_kind text NOT NULL,
    owner_name text NOT NULL,
    resource text NOT NULL,
    record_name text NOT NULL,
    record_uid text NOT NULL,
    accepted jsonb NOT NULL,
    protected jsonb NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    force_released_at timestamp with time zone,
    enrolling_since timestamp with time zone,
    recreations integer DEFAULT 0 NOT NULL,
    recreating_since timestamp with time zone,
    events bigint DEFAULT 0 NOT NULL,
    children jsonb DEFAULT '[]'::jsonb NOT NULL,
    rendered_with jsonb,
    provisioning_since timestamp with time zone,
    retries integer DEFAULT 0 NOT NULL,
    CONSTRAINT provisioned_resources_accepted_check CHECK ((jsonb_typeof(accepted) = 'object'::text)),
    CONSTRAINT provisioned_resources_children_check CHECK ((jsonb_typeof(children) = 'array'::text)),
    CONSTRAINT provisioned_resources_events_check CHECK ((events >= 0)),
    CONSTRAINT provisioned_resources_force_released_check CHECK (((force_released_at IS NULL) OR (deletion_requested_at IS NOT NULL))),
    CONSTRAINT provisioned_resources_generation_check CHECK ((generation >= 0)),
    CONSTRAINT provisioned_resources_protected_check CHECK ((jsonb_typeof(protected) = 'array'::text)),
    CONSTRAINT provisioned_resources_recreations_check CHECK ((recreations >= 0)),
    CONSTRAINT provisioned_resources_rendered_with_check CHECK ((jsonb_typeof(rendered_with) = 'object'::text)),
    CONSTRAINT provisioned_resources_retries_check CHECK ((retries >= 0)),
    CONSTRAINT provisioned_resources_status_check CHECK ((status = ANY (ARRAY['Pending'::text, 'Provisioning'::text, 'Enrolling'::text, 'Ready'::text, 'Failed'::text, 'Deregistering'::text, 'Deprovisioning'::text, 'Deleted'::text]))),
    CONSTRAINT provisioned_resources_teardown_check CHECK (((deletion_requested_at IS NOT NULL) OR (status <> ALL (ARRAY['Deregistering'::text, 'Deprovisioning'::text, 'Deleted'::text])))),
    CONSTRAINT provisioned_resources_times_check CHECK ((created_at <= updated_at)),
    CONSTRAINT provisioned_resources_version_check CHECK ((version >= 0)),
    CONSTRAINT provisioned_resources_xr_name_check CHECK ((btrim(xr_name) <> ''::text))
);

-- Name: COLUMN provisioned_resources.enrolling_since; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.enrolling_since IS 'When the substrate was ready and its node still to come; null before';

-- Name: COLUMN provisioned_resources.recreations; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.recreations IS 'Substrates let go to be made anew since spec.retry was raised last';

-- Name: COLUMN provisioned_resources.recreating_since; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.recreating_since IS 'When the recreation under way began; null while none is';

-- Name: COLUMN provisioned_resources.events; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.events IS 'Events told of it, whether they are still in the outbox or not';

-- Name: COLUMN provisioned_resources.children; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.children IS 'Objects that the substrate composed, each with its reference and its uid once it was seen';

-- Name: COLUMN provisioned_resources.rendered_with; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.rendered_with IS 'Knobs of the enrolment document under the substrate; null before there is one';

-- Name: COLUMN provisioned_resources.provisioning_since; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.provisioning_since IS 'Since when a substrate has been due; null while none is, and once it was Ready';

-- Name: COLUMN provisioned_resources.retries; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.provisioned_resources.retries IS 'How often a raised spec.retry was accepted; never falls';

-- Name: registration_nonces; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.registration_nonces (
    project_id uuid NOT NULL,
    nonce_hash bytea NOT NULL,
    bootstrap_token_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT registration_nonces_nonce_hash_check CHECK ((octet_length(nonce_hash) = 32))
);

-- Name: COLUMN registration_nonces.nonce_hash; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.registration_nonces.nonce_hash IS 'SHA-256: a nonce may be 4096 characters, more than an index entry holds';

-- Name: schema_compatibility; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.schema_compatibility (
    only_row boolean DEFAULT true NOT NULL,
    oldest_program text NOT NULL,
    CONSTRAINT schema_compatibility_oldest_program_check CHECK ((oldest_program ~ '^[0-9]{4}$'::text)),
    CONSTRAINT schema_compatibility_only_row_check CHECK (only_row)
);

-- Name: COLUMN schema_compatibility.oldest_program; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.schema_compatibility.oldest_program IS 'Newest revision that the oldest program knows which may work on this schema; a revision that takes something away raises it';

-- Name: schema_version; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.schema_version (
    version_num character varying(32) NOT NULL
);

-- Name: shared_holds; Type: TABLE; Schema: plexsphere; Owner: -

CREATE TABLE plexsphere.shared_holds (
    management_cluster_id uuid NOT NULL,
    namespace text NOT NULL,
    api_version text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    credential text NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    remembered_at timestamp with time zone DEFAULT now() NOT NULL,
    loosened boolean DEFAULT false NOT NULL,
    CONSTRAINT shared_holds_kind_check CHECK ((kind = ANY (ARRAY['Secret'::text, 'ProviderConfig'::text]))),
    CONSTRAINT shared_holds_revision_check CHECK ((revision >= 0))
);

-- Name: COLUMN shared_holds.revision; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.shared_holds.revision IS 'Counts how often it was remembered; who forgets names the revision that was read';

-- Name: COLUMN shared_holds.loosened; Type: COMMENT; Schema: plexsphere; Owner: -

COMMENT ON COLUMN plexsphere.shared_holds.loosened IS 'Somebody is about to let go of it; who needs it takes the mark off and counts the revision';

-- Name: bootstrap_tokens bootstrap_tokens_generation_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.bootstrap_tokens
    ADD CONSTRAINT bootstrap_tokens_generation_unique UNIQUE (provisioned_resource_id, generation);

-- Name: bootstrap_tokens bootstrap_tokens_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.bootstrap_tokens
    ADD CONSTRAINT bootstrap_tokens_pkey PRIMARY KEY (id);

-- Name: bootstrap_tokens bootstrap_tokens_token_hash_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.bootstrap_tokens
    ADD CONSTRAINT bootstrap_tokens_token_hash_unique UNIQUE (token_hash);

-- Name: broker_audit broker_audit_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.broker_audit
    ADD CONSTRAINT broker_audit_pkey PRIMARY KEY (id);

-- Name: domains domains_name_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.domains
    ADD CONSTRAINT domains_name_unique UNIQUE (name);

-- Name: domains domains_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.domains
    ADD CONSTRAINT domains_pkey PRIMARY KEY (id);

-- Name: driver_leases driver_leases_fence_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.driver_leases
    ADD CONSTRAINT driver_leases_fence_unique UNIQUE (key, fence);

-- Name: driver_leases driver_leases_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.driver_leases
    ADD CONSTRAINT driver_leases_pkey PRIMARY KEY (key);

-- Name: driver_thaws driver_thaws_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.driver_thaws
    ADD CONSTRAINT driver_thaws_pkey PRIMARY KEY (id);

-- Name: enrolment_audit enrolment_audit_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.enrolment_audit
    ADD CONSTRAINT enrolment_audit_pkey PRIMARY KEY (sequence);

-- Name: enrolment_evidence enrolment_evidence_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.enrolment_evidence
    ADD CONSTRAINT enrolment_evidence_pkey PRIMARY KEY (sequence);

-- Name: event_audit event_audit_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.event_audit
    ADD CONSTRAINT event_audit_pkey PRIMARY KEY (sequence);

-- Name: management_clusters management_clusters_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.management_clusters
    ADD CONSTRAINT management_clusters_pkey PRIMARY KEY (id);

-- Name: management_clusters management_clusters_slug_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.management_clusters
    ADD CONSTRAINT management_clusters_slug_unique UNIQUE (slug);

-- Name: mesh_free mesh_free_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.mesh_free
    ADD CONSTRAINT mesh_free_pkey PRIMARY KEY (domain_id, address);

-- Name: mesh_pools mesh_pools_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.mesh_pools
    ADD CONSTRAINT mesh_pools_pkey PRIMARY KEY (domain_id, mesh_range);

-- Name: nodes nodes_bootstrap_token_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.nodes
    ADD CONSTRAINT nodes_bootstrap_token_unique UNIQUE (bootstrap_token_id);

-- Name: nodes nodes_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (id);

-- Name: operator_audit operator_audit_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.operator_audit
    ADD CONSTRAINT operator_audit_pkey PRIMARY KEY (sequence);

-- Name: outbox_events outbox_events_order_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.outbox_events
    ADD CONSTRAINT outbox_events_order_unique UNIQUE (aggregate_id, aggregate_sequence);

-- Name: outbox_events outbox_events_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.outbox_events
    ADD CONSTRAINT outbox_events_pkey PRIMARY KEY (id);

-- Name: project_cluster_assignments project_cluster_assignments_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.project_cluster_assignments
    ADD CONSTRAINT project_cluster_assignments_pkey PRIMARY KEY (project_id);

-- Name: projects projects_name_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.projects
    ADD CONSTRAINT projects_name_unique UNIQUE (name);

-- Name: projects projects_namespace_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.projects
    ADD CONSTRAINT projects_namespace_unique UNIQUE (namespace);

-- Name: projects projects_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);

-- Name: provisioned_resource_outbox_token provisioned_resource_outbox_token_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.provisioned_resource_outbox_token
    ADD CONSTRAINT provisioned_resource_outbox_token_pkey PRIMARY KEY (provisioned_resource_id, event_type, generation);

-- Name: provisioned_resources provisioned_resources_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.provisioned_resources
    ADD CONSTRAINT provisioned_resources_pkey PRIMARY KEY (id);

-- Name: provisioned_resources provisioned_resources_xr_name_unique; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.provisioned_resources
    ADD CONSTRAINT provisioned_resources_xr_name_unique UNIQUE (xr_name);

-- Name: registration_nonces registration_nonces_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.registration_nonces
    ADD CONSTRAINT registration_nonces_pkey PRIMARY KEY (project_id, nonce_hash);

-- Name: schema_compatibility schema_compatibility_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.schema_compatibility
    ADD CONSTRAINT schema_compatibility_pkey PRIMARY KEY (only_row);

-- Name: schema_version schema_version_pkc; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.schema_version
    ADD CONSTRAINT schema_version_pkc PRIMARY KEY (version_num);

-- Name: shared_holds shared_holds_pkey; Type: CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.shared_holds
    ADD CONSTRAINT shared_holds_pkey PRIMARY KEY (management_cluster_id, namespace, api_version, kind, name, credential);

-- Name: bootstrap_tokens_expires_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX bootstrap_tokens_expires_idx ON plexsphere.bootstrap_tokens USING btree (expires_at);

-- Name: broker_audit_at_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX broker_audit_at_idx ON plexsphere.broker_audit USING btree (at);

-- Name: broker_audit_force_release_unique; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX broker_audit_force_release_unique ON plexsphere.broker_audit USING btree (provisioned_resource_id) WHERE (action = 'force-release'::text);

-- Name: driver_thaws_cluster_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX driver_thaws_cluster_idx ON plexsphere.driver_thaws USING btree (management_cluster_id, thawed_at);

-- Name: enrolment_audit_at_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX enrolment_audit_at_idx ON plexsphere.enrolment_audit USING btree (at);

-- Name: enrolment_evidence_at_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX enrolment_evidence_at_idx ON plexsphere.enrolment_evidence USING btree (at);

-- Name: enrolment_evidence_denial_unique; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX enrolment_evidence_denial_unique ON plexsphere.enrolment_evidence USING btree (bootstrap_token_id, code, detail, block) NULLS NOT DISTINCT WHERE (code <> 'readmitted'::text);

-- Name: event_audit_at_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX event_audit_at_idx ON plexsphere.event_audit USING btree (at);

-- Name: mesh_free_order; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX mesh_free_order ON plexsphere.mesh_free USING btree (domain_id, mesh_range, rests_until, address);

-- Name: nodes_mesh_ip_live; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX nodes_mesh_ip_live ON plexsphere.nodes USING btree (domain_id, mesh_ip) WHERE (deregistered_at IS NULL);

-- Name: nodes_project_live; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX nodes_project_live ON plexsphere.nodes USING btree (project_id, id) WHERE (deregistered_at IS NULL);

-- Name: nodes_public_key_live; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX nodes_public_key_live ON plexsphere.nodes USING btree (domain_id, public_key) WHERE (deregistered_at IS NULL);

-- Name: nodes_resource_live; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX nodes_resource_live ON plexsphere.nodes USING btree (provisioned_resource_id) WHERE (deregistered_at IS NULL);

-- Name: operator_audit_at_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX operator_audit_at_idx ON plexsphere.operator_audit USING btree (at);

-- Name: orphans_open_key; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX orphans_open_key ON plexsphere.orphans USING btree (management_cluster_id, finding, subject) WHERE (gone_at IS NULL);

-- Name: outbox_events_parked_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX outbox_events_parked_idx ON plexsphere.outbox_events USING btree (sequence) WHERE (parked_at IS NOT NULL);

-- Name: outbox_events_unpublished_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX outbox_events_unpublished_idx ON plexsphere.outbox_events USING btree (sequence) WHERE (published_at IS NULL);

-- Name: outbox_events_waiting_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX outbox_events_waiting_idx ON plexsphere.outbox_events USING btree (aggregate_id, aggregate_sequence) WHERE (published_at IS NULL);

-- Name: project_cluster_assignments_cluster_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX project_cluster_assignments_cluster_idx ON plexsphere.project_cluster_assignments USING btree (management_cluster_id);

-- Name: projects_domain_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX projects_domain_idx ON plexsphere.projects USING btree (domain_id);

-- Name: provisioned_resources_deleted_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX provisioned_resources_deleted_idx ON plexsphere.provisioned_resources USING btree (id) WHERE (status = 'Deleted'::text);

-- Name: provisioned_resources_live_key; Type: INDEX; Schema: plexsphere; Owner: -

CREATE UNIQUE INDEX provisioned_resources_live_key ON plexsphere.provisioned_resources USING btree (project_id, namespace, xr_group, xr_kind, owner_name, resource) WHERE (deletion_requested_at IS NULL);

-- Name: provisioned_resources_namespace_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX provisioned_resources_namespace_idx ON plexsphere.provisioned_resources USING btree (namespace, record_name) WHERE (status <> 'Deleted'::text);

-- Name: provisioned_resources_project_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX provisioned_resources_project_idx ON plexsphere.provisioned_resources USING btree (project_id);

-- Name: provisioned_resources_record_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX provisioned_resources_record_idx ON plexsphere.provisioned_resources USING btree (record_uid);

-- Name: provisioned_resources_unfinished_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX provisioned_resources_unfinished_idx ON plexsphere.provisioned_resources USING btree (created_at, id) WHERE (status <> 'Deleted'::text);

-- Name: provisioned_resources_unsettled_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX provisioned_resources_unsettled_idx ON plexsphere.provisioned_resources USING btree (created_at, id) WHERE ((status = 'Deleted'::text) AND (protected @> '[{"sibling": true, "released": false}]'::jsonb));

-- Name: registration_nonces_token_idx; Type: INDEX; Schema: plexsphere; Owner: -

CREATE INDEX registration_nonces_token_idx ON plexsphere.registration_nonces USING btree (bootstrap_token_id);

-- Name: bootstrap_tokens bootstrap_tokens_expired; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER bootstrap_tokens_expired BEFORE UPDATE OF expiry_told ON plexsphere.bootstrap_tokens FOR EACH ROW WHEN ((new.expiry_told IS DISTINCT FROM old.expiry_told)) EXECUTE FUNCTION plexsphere.tell_of_token();

-- Name: bootstrap_tokens bootstrap_tokens_issued; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER bootstrap_tokens_issued AFTER INSERT ON plexsphere.bootstrap_tokens FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_token();

-- Name: bootstrap_tokens bootstrap_tokens_revoked; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER bootstrap_tokens_revoked BEFORE UPDATE OF revoked_at ON plexsphere.bootstrap_tokens FOR EACH ROW WHEN (((old.revoked_at IS NULL) AND (new.revoked_at IS NOT NULL))) EXECUTE FUNCTION plexsphere.tell_of_token();

-- Name: broker_audit broker_audit_append_only; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER broker_audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON plexsphere.broker_audit FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_audit_change();

-- Name: enrolment_evidence enrolment_evidence_append_only; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER enrolment_evidence_append_only BEFORE DELETE OR TRUNCATE ON plexsphere.enrolment_evidence FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_enrolment_evidence_change();

-- Name: enrolment_evidence enrolment_evidence_counted; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER enrolment_evidence_counted BEFORE UPDATE ON plexsphere.enrolment_evidence FOR EACH ROW EXECUTE FUNCTION plexsphere.refuse_enrolment_evidence_change();

-- Name: event_audit event_audit_append_only; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER event_audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON plexsphere.event_audit FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_event_audit_change();

-- Name: management_clusters management_clusters_registered; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER management_clusters_registered AFTER INSERT ON plexsphere.management_clusters FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_cluster();

-- Name: operator_audit operator_audit_append_only; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER operator_audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON plexsphere.operator_audit FOR EACH STATEMENT EXECUTE FUNCTION plexsphere.refuse_operator_audit_change();

-- Name: project_cluster_assignments project_cluster_assignments_changed; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER project_cluster_assignments_changed BEFORE UPDATE OF management_cluster_id, namespace_phase ON plexsphere.project_cluster_assignments FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_placement();

-- Name: project_cluster_assignments project_cluster_assignments_counted; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER project_cluster_assignments_counted BEFORE INSERT ON plexsphere.project_cluster_assignments FOR EACH ROW EXECUTE FUNCTION plexsphere.count_placement();

-- Name: project_cluster_assignments project_cluster_assignments_placed; Type: TRIGGER; Schema: plexsphere; Owner: -

CREATE TRIGGER project_cluster_assignments_placed AFTER INSERT ON plexsphere.project_cluster_assignments FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_placement();

-- Name: bootstrap_tokens bootstrap_tokens_project_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.bootstrap_tokens
    ADD CONSTRAINT bootstrap_tokens_project_id_fkey FOREIGN KEY (project_id) REFERENCES plexsphere.projects(id) ON DELETE RESTRICT;

-- Name: bootstrap_tokens bootstrap_tokens_provisioned_resource_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.bootstrap_tokens
    ADD CONSTRAINT bootstrap_tokens_provisioned_resource_id_fkey FOREIGN KEY (provisioned_resource_id) REFERENCES plexsphere.provisioned_resources(id) ON DELETE RESTRICT;

-- Name: driver_thaws driver_thaws_management_cluster_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.driver_thaws
    ADD CONSTRAINT driver_thaws_management_cluster_id_fkey FOREIGN KEY (management_cluster_id) REFERENCES plexsphere.management_clusters(id) ON DELETE RESTRICT;

-- Name: mesh_pools mesh_pools_domain_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.mesh_pools
    ADD CONSTRAINT mesh_pools_domain_id_fkey FOREIGN KEY (domain_id) REFERENCES plexsphere.domains(id) ON DELETE RESTRICT;

-- Name: nodes nodes_bootstrap_token_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.nodes
    ADD CONSTRAINT nodes_bootstrap_token_id_fkey FOREIGN KEY (bootstrap_token_id) REFERENCES plexsphere.bootstrap_tokens(id) ON DELETE RESTRICT;

-- Name: orphans orphans_management_cluster_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.orphans
    ADD CONSTRAINT orphans_management_cluster_id_fkey FOREIGN KEY (management_cluster_id) REFERENCES plexsphere.management_clusters(id);

-- Name: project_cluster_assignments project_cluster_assignments_management_cluster_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.project_cluster_assignments
    ADD CONSTRAINT project_cluster_assignments_management_cluster_id_fkey FOREIGN KEY (management_cluster_id) REFERENCES plexsphere.management_clusters(id) ON DELETE RESTRICT;

-- Name: project_cluster_assignments project_cluster_assignments_project_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.project_cluster_assignments
    ADD CONSTRAINT project_cluster_assignments_project_id_fkey FOREIGN KEY (project_id) REFERENCES plexsphere.projects(id) ON DELETE RESTRICT;

-- Name: projects projects_domain_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.projects
    ADD CONSTRAINT projects_domain_id_fkey FOREIGN KEY (domain_id) REFERENCES plexsphere.domains(id) ON DELETE RESTRICT;

-- Name: provisioned_resource_outbox_token provisioned_resource_outbox_token_provisioned_resource_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.provisioned_resource_outbox_token
    ADD CONSTRAINT provisioned_resource_outbox_token_provisioned_resource_id_fkey FOREIGN KEY (provisioned_resource_id) REFERENCES plexsphere.provisioned_resources(id) ON DELETE RESTRICT;

-- Name: provisioned_resources provisioned_resources_management_cluster_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.provisioned_resources
    ADD CONSTRAINT provisioned_resources_management_cluster_id_fkey FOREIGN KEY (management_cluster_id) REFERENCES plexsphere.management_clusters(id) ON DELETE RESTRICT;

-- Name: provisioned_resources provisioned_resources_project_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.provisioned_resources
    ADD CONSTRAINT provisioned_resources_project_id_fkey FOREIGN KEY (project_id) REFERENCES plexsphere.projects(id) ON DELETE RESTRICT;

-- Name: shared_holds shared_holds_management_cluster_id_fkey; Type: FK CONSTRAINT; Schema: plexsphere; Owner: -

ALTER TABLE ONLY plexsphere.shared_holds
    ADD CONSTRAINT shared_holds_management_cluster_id_fkey FOREIGN KEY (management_cluster_id) REFERENCES plexsphere.management_clusters(id) ON DELETE RESTRICT;

-- PostgreSQL database dump complete
