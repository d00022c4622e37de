-- How often a machine was made anew because its node did not come, and since when one is: both
-- survive a restart in the middle of it (docs/decisions/0014).

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN recreations      integer NOT NULL DEFAULT 0,
    ADD COLUMN recreating_since timestamptz,
    ADD CONSTRAINT provisioned_resources_recreations_check CHECK (recreations >= 0);
COMMENT ON COLUMN plexsphere.provisioned_resources.recreations IS
    'Substrates let go to be made anew since spec.retry was raised last';
COMMENT ON COLUMN plexsphere.provisioned_resources.recreating_since IS
    'When the recreation under way began; null while none is';

ALTER TABLE plexsphere.broker_audit
    DROP CONSTRAINT broker_audit_action_check,
    ADD CONSTRAINT broker_audit_action_check CHECK (
        action IN ('force-release', 'unreleased-substrate-gone', 'recreate')
    );
