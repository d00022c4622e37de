DROP TABLE plexsphere.orphans;

ALTER TABLE plexsphere.provisioned_resources
    DROP CONSTRAINT provisioned_resources_rendered_with_check,
    DROP CONSTRAINT provisioned_resources_children_check,
    DROP COLUMN rendered_with,
    DROP COLUMN children;
