-- What is over is found without a look at what lives, and the outbox holds no event that nobody
-- declared (docs/operations/retention.md, docs/events.md).

CREATE INDEX provisioned_resources_deleted_idx
    ON plexsphere.provisioned_resources (id)
    WHERE status = 'Deleted';

ALTER TABLE plexsphere.outbox_events
    ADD CONSTRAINT outbox_events_event_type_check CHECK (event_type IN (
        'broker.ProvisionedResourceRequested',
        'broker.ProvisionedResourceReady',
        'broker.ProvisionedResourceFailed',
        'broker.ProvisionedResourceDeleting',
        'broker.ProvisionedResourceDeleted',
        'identity.NodeRegistered',
        'identity.NodeDeregistered',
        'identity.BootstrapTokenIssued',
        'identity.BootstrapTokenRevoked',
        'identity.BootstrapTokenExpired',
        'managementfleet.ManagementClusterRegistered',
        'managementfleet.ProjectClusterAssigned',
        'managementfleet.ProjectNamespaceReady',
        'managementfleet.ProjectNamespaceTerminated'
    )),
    ADD CONSTRAINT outbox_events_aggregate_type_check CHECK (aggregate_type IN (
        'ProvisionedResource', 'Node', 'BootstrapToken', 'ManagementCluster', 'Project'
    ));
