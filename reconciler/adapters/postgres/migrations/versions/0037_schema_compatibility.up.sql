-- A program that does not know the newest revision learns here whether it may work beside it, and
-- an aggregate's events go on counting after the published ones were removed
-- (docs/operations/upgrade.md, docs/operations/retention.md).

CREATE TABLE plexsphere.schema_compatibility (
    only_row       boolean NOT NULL DEFAULT true,
    oldest_program text    NOT NULL,
    CONSTRAINT schema_compatibility_pkey PRIMARY KEY (only_row),
    CONSTRAINT schema_compatibility_only_row_check CHECK (only_row),
    CONSTRAINT schema_compatibility_oldest_program_check CHECK (oldest_program ~ '^[0-9]{4}$')
);
COMMENT ON COLUMN plexsphere.schema_compatibility.oldest_program IS
    'Newest revision that the oldest program knows which may work on this schema; a revision that '
    'takes something away raises it';
INSERT INTO plexsphere.schema_compatibility (oldest_program) VALUES ('0037');

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN events bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT provisioned_resources_events_check CHECK (events >= 0);
COMMENT ON COLUMN plexsphere.provisioned_resources.events IS
    'Events told of it, whether they are still in the outbox or not';
UPDATE plexsphere.provisioned_resources AS resource SET events = told.last_sequence
FROM (
    SELECT aggregate_id, max(aggregate_sequence) AS last_sequence FROM plexsphere.outbox_events
    WHERE aggregate_type = 'ProvisionedResource' GROUP BY aggregate_id
) AS told
WHERE told.aggregate_id = resource.id;
