-- Since when a node is waited for, so that its registration has a deadline that survives a
-- restart. A row that already waits began, as far as anybody knows, with its last write.

ALTER TABLE plexsphere.provisioned_resources ADD COLUMN enrolling_since timestamptz;
COMMENT ON COLUMN plexsphere.provisioned_resources.enrolling_since IS
    'When the substrate was ready and its node still to come; null before';
UPDATE plexsphere.provisioned_resources SET enrolling_since = updated_at
WHERE status = 'Enrolling';
