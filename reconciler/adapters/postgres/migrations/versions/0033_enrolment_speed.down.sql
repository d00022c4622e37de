DROP FUNCTION plexsphere.register_node;
DROP FUNCTION plexsphere.take_out_node;
DROP FUNCTION plexsphere.tell_of_node;
DROP TABLE plexsphere.mesh_free;
DROP TABLE plexsphere.mesh_pools;
ALTER TABLE plexsphere.projects DROP COLUMN mesh_subrange;
DROP INDEX plexsphere.registration_nonces_token_idx;
DROP INDEX plexsphere.nodes_project_live;
DROP INDEX plexsphere.nodes_public_key_live;
ALTER TABLE plexsphere.nodes
    DROP COLUMN key_shared, DROP COLUMN readmitted, DROP COLUMN previous_nsk_hash, DROP COLUMN reported_at;
ALTER TABLE plexsphere.enrolment_audit DROP COLUMN detail, DROP COLUMN node_id;
