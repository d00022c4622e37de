-- What a teardown must know although nobody else remembers it: the objects that a substrate was made
-- of (docs/decisions/0016), and the knobs that its document was rendered with.

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN children      jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN rendered_with jsonb,
    ADD CONSTRAINT provisioned_resources_children_check CHECK (jsonb_typeof(children) = 'array'),
    ADD CONSTRAINT provisioned_resources_rendered_with_check CHECK (
        jsonb_typeof(rendered_with) = 'object'
    );
COMMENT ON COLUMN plexsphere.provisioned_resources.children IS
    'Objects that the substrate composed, each with its reference and its uid once it was seen';
COMMENT ON COLUMN plexsphere.provisioned_resources.rendered_with IS
    'Knobs of the enrolment document under the substrate; null before there is one';

-- What is left over in either direction, found by a sweep and never deleted by it.

CREATE TABLE plexsphere.orphans (
    management_cluster_id uuid        NOT NULL REFERENCES plexsphere.management_clusters (id),
    finding               text        NOT NULL,
    subject               text        NOT NULL,
    detail                text        NOT NULL,
    found_at              timestamptz NOT NULL DEFAULT now(),
    gone_at               timestamptz,
    CONSTRAINT orphans_finding_check CHECK (
        finding IN ('substrate-without-record', 'record-missing', 'node-of-deleted', 'kind-unlisted')
    ),
    CONSTRAINT orphans_subject_check CHECK (subject <> '')
);
CREATE UNIQUE INDEX orphans_open_key
    ON plexsphere.orphans (management_cluster_id, finding, subject) WHERE gone_at IS NULL;
COMMENT ON TABLE plexsphere.orphans IS
    'Findings of the orphan sweep; gone_at is null while one stands';
