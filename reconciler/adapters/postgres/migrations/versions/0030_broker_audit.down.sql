DROP TABLE plexsphere.broker_audit;
DROP FUNCTION plexsphere.refuse_audit_change();

ALTER TABLE plexsphere.provisioned_resources
    DROP CONSTRAINT provisioned_resources_force_released_check,
    DROP COLUMN force_released_at;
