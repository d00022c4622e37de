-- What is held for the users of a credential, remembered before it is held: its name cannot
-- be computed again once the catalogue changed (docs/decisions/0011).

CREATE TABLE plexsphere.shared_holds (
    management_cluster_id uuid        NOT NULL,
    namespace             text        NOT NULL,
    api_version           text        NOT NULL,
    kind                  text        NOT NULL,
    name                  text        NOT NULL,
    credential            text        NOT NULL,
    revision              bigint      NOT NULL DEFAULT 0,
    remembered_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT shared_holds_pkey PRIMARY KEY
        (management_cluster_id, namespace, api_version, kind, name, credential),
    CONSTRAINT shared_holds_management_cluster_id_fkey FOREIGN KEY (management_cluster_id)
        REFERENCES plexsphere.management_clusters (id) ON DELETE RESTRICT,
    CONSTRAINT shared_holds_kind_check CHECK (kind IN ('Secret', 'ProviderConfig')),
    CONSTRAINT shared_holds_revision_check CHECK (revision >= 0)
);
COMMENT ON COLUMN plexsphere.shared_holds.revision IS
    'Counts how often it was remembered; who forgets names the revision that was read';
