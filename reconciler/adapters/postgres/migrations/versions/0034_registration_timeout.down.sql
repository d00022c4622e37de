ALTER TABLE plexsphere.provisioned_resources DROP COLUMN enrolling_since;
