-- Since when a substrate has been due, so that the time it may take survives a restart. Of a row
-- that already waits it begins now: for how long it has waited nobody knows.

ALTER TABLE plexsphere.provisioned_resources ADD COLUMN provisioning_since timestamptz;
COMMENT ON COLUMN plexsphere.provisioned_resources.provisioning_since IS
    'Since when a substrate has been due; null while none is, and once it was Ready';
UPDATE plexsphere.provisioned_resources SET provisioning_since = clock_timestamp()
WHERE status = 'Provisioning';
