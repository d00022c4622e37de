-- An earlier program keeps the newest denials, so that what comes back is the newest: the first and
-- the last of each count, because it has no place for more.

ALTER TABLE plexsphere.enrolment_audit DROP COLUMN block;
COMMENT ON TABLE plexsphere.enrolment_audit IS
    'Denials, and nodes given another key (readmitted); ids only, never a value that was asked with';

INSERT INTO plexsphere.enrolment_audit
    (at, code, status, bootstrap_token_id, project_id, remote_address, node_id, detail)
SELECT said.at, code, status, bootstrap_token_id, project_id, said.remote_address, node_id, detail
FROM plexsphere.enrolment_evidence AS kept
CROSS JOIN LATERAL (
    SELECT kept.at, kept.remote_address
    UNION ALL
    SELECT kept.last_at, kept.last_address WHERE kept.times > 1
) AS said
ORDER BY said.at, kept.sequence;

DROP TABLE plexsphere.enrolment_evidence;
DROP FUNCTION plexsphere.refuse_enrolment_evidence_change();
DROP FUNCTION plexsphere.address_block(text);
