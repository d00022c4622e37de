-- The audit is append-only: entries of a later release stay, and only new ones are judged.

ALTER TABLE plexsphere.broker_audit
    DROP CONSTRAINT broker_audit_action_check,
    ADD CONSTRAINT broker_audit_action_check CHECK (
        action IN ('force-release', 'unreleased-substrate-gone', 'recreate')
    ) NOT VALID;
DO $$
BEGIN
    ALTER TABLE plexsphere.broker_audit VALIDATE CONSTRAINT broker_audit_action_check;
EXCEPTION WHEN check_violation THEN
    RAISE NOTICE 'plexsphere.broker_audit keeps entries of a later release';
END
$$;
