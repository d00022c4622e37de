-- A raised spec.retry is a person's word that something starts over, and is kept as such.

ALTER TABLE plexsphere.broker_audit
    DROP CONSTRAINT broker_audit_action_check,
    ADD CONSTRAINT broker_audit_action_check CHECK (
        action IN ('force-release', 'unreleased-substrate-gone', 'recreate', 'retry')
    );
