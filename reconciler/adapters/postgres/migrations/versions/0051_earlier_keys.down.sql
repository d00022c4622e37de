ALTER TABLE plexsphere.nodes
    DROP CONSTRAINT nodes_earlier_nsk_hashes_check,
    DROP COLUMN earlier_nsk_hashes;
