-- The few aggregates whose siblings are still to be looked after are found without reading
-- every one that ever was.

CREATE INDEX provisioned_resources_unsettled_idx
    ON plexsphere.provisioned_resources (created_at, id)
    WHERE status = 'Deleted' AND protected @> '[{"sibling": true, "released": false}]';
