-- The management fleet's inventory (seed 002, "Persistence").

CREATE TABLE plexsphere.management_clusters (
    id                    uuid        NOT NULL,
    name                  text        NOT NULL,
    slug                  text        NOT NULL,
    region                text,
    kubeconfig_secret_ref text,
    status                text        NOT NULL DEFAULT 'active',
    created_at            timestamptz NOT NULL DEFAULT now(),
    updated_at            timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT management_clusters_pkey PRIMARY KEY (id),
    CONSTRAINT management_clusters_slug_unique UNIQUE (slug),
    CONSTRAINT management_clusters_slug_check CHECK (slug <> ''),
    CONSTRAINT management_clusters_times_check CHECK (created_at <= updated_at)
);

CREATE TABLE plexsphere.project_cluster_assignments (
    project_id            uuid        NOT NULL,
    management_cluster_id uuid        NOT NULL,
    region                text,
    namespace_name        text        NOT NULL,
    namespace_phase       text        NOT NULL,
    assigned_at           timestamptz NOT NULL DEFAULT now(),
    updated_at            timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT project_cluster_assignments_pkey PRIMARY KEY (project_id),
    CONSTRAINT project_cluster_assignments_project_id_fkey FOREIGN KEY (project_id)
        REFERENCES plexsphere.projects (id) ON DELETE RESTRICT,
    CONSTRAINT project_cluster_assignments_management_cluster_id_fkey
        FOREIGN KEY (management_cluster_id)
        REFERENCES plexsphere.management_clusters (id) ON DELETE RESTRICT,
    CONSTRAINT project_cluster_assignments_phase_check CHECK (namespace_phase IN (
        'Pending', 'Provisioning', 'Ready', 'Degraded', 'Terminating', 'Deleted'
    )),
    CONSTRAINT project_cluster_assignments_times_check CHECK (assigned_at <= updated_at)
);
CREATE INDEX project_cluster_assignments_cluster_idx
    ON plexsphere.project_cluster_assignments (management_cluster_id);
