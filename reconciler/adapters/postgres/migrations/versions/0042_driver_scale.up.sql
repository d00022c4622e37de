-- What the driver needs at ten thousand aggregates: counts and names by an index, holds that are
-- written only while somebody lets go, and a person's word that a frozen cluster is as it seems.

CREATE INDEX provisioned_resources_namespace_idx
    ON plexsphere.provisioned_resources (namespace, record_name)
    WHERE status <> 'Deleted';

ALTER TABLE plexsphere.shared_holds ADD COLUMN loosened boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN plexsphere.shared_holds.loosened IS
    'Somebody is about to let go of it; who needs it takes the mark off and counts the revision';

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
CREATE INDEX driver_thaws_cluster_idx
    ON plexsphere.driver_thaws (management_cluster_id, thawed_at);
COMMENT ON TABLE plexsphere.driver_thaws IS
    'Who declared with `broker thaw` that what a frozen driver sees is true, and why';
