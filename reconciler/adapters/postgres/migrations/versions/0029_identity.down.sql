DROP TABLE plexsphere.enrolment_audit;
DROP TABLE plexsphere.registration_nonces;
DROP TABLE plexsphere.nodes;
DROP TABLE plexsphere.bootstrap_tokens;
