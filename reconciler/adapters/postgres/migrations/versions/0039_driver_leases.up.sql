-- Who drives which management cluster (docs/decisions/0015). The key refers to no table: a
-- process stands for election before it may write anything.

CREATE TABLE plexsphere.driver_leases (
    key        uuid        NOT NULL,
    holder     text        NOT NULL,
    fence      bigint      NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT driver_leases_pkey PRIMARY KEY (key),
    CONSTRAINT driver_leases_fence_unique UNIQUE (key, fence),
    CONSTRAINT driver_leases_holder_check CHECK (char_length(holder) BETWEEN 1 AND 128),
    CONSTRAINT driver_leases_fence_check CHECK (fence >= 1)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
COMMENT ON TABLE plexsphere.driver_leases IS
    'One row per management cluster; renewed every few seconds, locked by each write of its driver';
COMMENT ON COLUMN plexsphere.driver_leases.fence IS
    'Counted up by a takeover. In a unique key, so that FOR KEY SHARE holds a takeover off';
