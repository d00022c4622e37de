-- The ordered teardown (seed 001, "Persistence").

ALTER TABLE plexsphere.provisioned_resources
    ADD COLUMN deletion_requested_at timestamptz,
    DROP CONSTRAINT provisioned_resources_status_check,
    ADD CONSTRAINT provisioned_resources_status_check CHECK (status IN (
        'Pending', 'Provisioning', 'Enrolling', 'Ready', 'Failed',
        'Deregistering', 'Deprovisioning', 'Deleted'
    ));

ALTER TABLE plexsphere.provisioned_resource_outbox_token
    DROP CONSTRAINT provisioned_resource_outbox_token_event_type_check,
    ADD CONSTRAINT provisioned_resource_outbox_token_event_type_check CHECK (event_type IN (
        'broker.ProvisionedResourceRequested',
        'broker.ProvisionedResourceReady',
        'broker.ProvisionedResourceFailed',
        'broker.ProvisionedResourceDeleting',
        'broker.ProvisionedResourceDeleted'
    ));
