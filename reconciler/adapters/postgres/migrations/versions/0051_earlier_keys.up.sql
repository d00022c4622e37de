-- Of several answers to one registration nobody knows which arrived, however many they were. The
-- release before this one keeps the last two keys; its rows and its writes stay good.

ALTER TABLE plexsphere.nodes
    ADD COLUMN earlier_nsk_hashes bytea[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT nodes_earlier_nsk_hashes_check CHECK (cardinality(earlier_nsk_hashes) <= 20);
COMMENT ON COLUMN plexsphere.nodes.earlier_nsk_hashes IS
    'Keys that were answered before the previous one; good until the node reports, like that one';
