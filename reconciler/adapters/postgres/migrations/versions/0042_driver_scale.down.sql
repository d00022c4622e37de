DROP TABLE plexsphere.driver_thaws;
ALTER TABLE plexsphere.shared_holds DROP COLUMN loosened;
DROP INDEX plexsphere.provisioned_resources_namespace_idx;
