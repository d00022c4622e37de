-- An earlier release knows nothing of a recreation under way: it would take the let-go machine
-- for lost, and compose another beside one that is still going. A teardown it knows.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM plexsphere.provisioned_resources
        WHERE recreating_since IS NOT NULL AND deletion_requested_at IS NULL
    ) THEN
        RAISE EXCEPTION
            'machines are being made anew; wait until recreating_since is null in every live row';
    END IF;
END
$$;

-- The audit is append-only: entries of a later release stay, and only new ones are judged.

ALTER TABLE plexsphere.broker_audit
    DROP CONSTRAINT broker_audit_action_check,
    ADD CONSTRAINT broker_audit_action_check CHECK (
        action IN ('force-release', 'unreleased-substrate-gone')
    ) NOT VALID;
DO $$
BEGIN
    ALTER TABLE plexsphere.broker_audit VALIDATE CONSTRAINT broker_audit_action_check;
EXCEPTION WHEN check_violation THEN
    RAISE NOTICE 'plexsphere.broker_audit keeps entries of a later release';
END
$$;

ALTER TABLE plexsphere.provisioned_resources
    DROP CONSTRAINT provisioned_resources_recreations_check,
    DROP COLUMN recreating_since,
    DROP COLUMN recreations;
