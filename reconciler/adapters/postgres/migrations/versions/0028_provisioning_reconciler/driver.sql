-- Who drives a management cluster, and what a driver remembers beside the aggregates.

-- The key refers to no table: a process stands for election before it may write anything
-- (docs/decisions/0015-replicas.md).
CREATE TABLE plexsphere.driver_leases (
    key        uuid        NOT NULL,
    holder     text        NOT NULL,
    fence      bigint      NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT driver_leases_pkey PRIMARY KEY (key),
    CONSTRAINT driver_leases_fence_unique UNIQUE (key, fence),
    CONSTRAINT driver_leases_holder_check CHECK (char_length(holder) BETWEEN 1 AND 128),
    CONSTRAINT driver_leases_fence_check CHECK (fence >= 1)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE plexsphere.driver_leases IS
    'One row per management cluster; renewed every few seconds, locked by each write of its driver';
COMMENT ON COLUMN plexsphere.driver_leases.fence IS
    'Counted up by a takeover. In a unique key, so that FOR KEY SHARE holds a takeover off';

-- A person's word that a frozen cluster is as it seems (docs/operations/freeze.md).
CREATE TABLE plexsphere.driver_thaws (
    id                    bigint      GENERATED ALWAYS AS IDENTITY,
    management_cluster_id uuid        NOT NULL,
    thawed_at             timestamptz NOT NULL DEFAULT now(),
    reason                text        NOT NULL,
    actor                 text        NOT NULL DEFAULT session_user,
    CONSTRAINT driver_thaws_pkey PRIMARY KEY (id),
    CONSTRAINT driver_thaws_management_cluster_id_fkey FOREIGN KEY (management_cluster_id)
        REFERENCES plexsphere.management_clusters (id) ON DELETE RESTRICT,
    CONSTRAINT driver_thaws_reason_check CHECK (char_length(reason) BETWEEN 1 AND 512)
);
COMMENT ON TABLE plexsphere.driver_thaws IS
    'Who declared with `broker thaw` that what a frozen driver sees is true, and why';
CREATE INDEX driver_thaws_cluster_idx
    ON plexsphere.driver_thaws (management_cluster_id, thawed_at);

-- What is held for the users of a credential, remembered before it is held: its name cannot be
-- computed again once the catalogue changed (docs/decisions/0011-what-is-held-is-remembered.md).
CREATE TABLE plexsphere.shared_holds (
    management_cluster_id uuid        NOT NULL,
    namespace             text        NOT NULL,
    api_version           text        NOT NULL,
    kind                  text        NOT NULL,
    name                  text        NOT NULL,
    credential            text        NOT NULL,
    revision              bigint      NOT NULL DEFAULT 0,
    remembered_at         timestamptz NOT NULL DEFAULT now(),
    loosened              boolean     NOT NULL DEFAULT false,
    CONSTRAINT shared_holds_pkey PRIMARY KEY
        (management_cluster_id, namespace, api_version, kind, name, credential),
    CONSTRAINT shared_holds_management_cluster_id_fkey FOREIGN KEY (management_cluster_id)
        REFERENCES plexsphere.management_clusters (id) ON DELETE RESTRICT,
    CONSTRAINT shared_holds_kind_check CHECK (kind IN ('Secret', 'ProviderConfig')),
    CONSTRAINT shared_holds_revision_check CHECK (revision >= 0)
);
COMMENT ON COLUMN plexsphere.shared_holds.revision IS
    'Counts how often it was remembered; who forgets names the revision that was read';
COMMENT ON COLUMN plexsphere.shared_holds.loosened IS
    'Somebody is about to let go of it; who needs it takes the mark off and counts the revision';

-- What is left over in either direction, found by a sweep and never deleted by it
-- (docs/decisions/0016-children-and-orphans.md).
CREATE TABLE plexsphere.orphans (
    management_cluster_id uuid        NOT NULL,
    finding               text        NOT NULL,
    subject               text        NOT NULL,
    detail                text        NOT NULL,
    found_at              timestamptz NOT NULL DEFAULT now(),
    gone_at               timestamptz,
    CONSTRAINT orphans_management_cluster_id_fkey FOREIGN KEY (management_cluster_id)
        REFERENCES plexsphere.management_clusters (id),
    CONSTRAINT orphans_finding_check CHECK (
        finding IN ('substrate-without-record', 'record-missing', 'node-of-deleted', 'kind-unlisted')
    ),
    CONSTRAINT orphans_subject_check CHECK (subject <> '')
);
COMMENT ON TABLE plexsphere.orphans IS
    'Findings of the orphan sweep; gone_at is null while one stands';
CREATE UNIQUE INDEX orphans_open_key
    ON plexsphere.orphans (management_cluster_id, finding, subject) WHERE gone_at IS NULL;
