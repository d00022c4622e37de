ALTER TABLE plexsphere.provisioned_resources DROP COLUMN provisioning_since;
