-- The events of the fleet, told in the transaction of their change whichever statement makes it.

CREATE FUNCTION plexsphere.tell_of_cluster() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM plexsphere.tell('ManagementCluster', NEW.id, 1,
        'managementfleet.ManagementClusterRegistered', NEW.created_at, jsonb_build_object(
            'ManagementClusterID', NEW.id, 'Name', NEW.name, 'Slug', NEW.slug,
            'Region', coalesce(NEW.region, '')
        ));
    RETURN NULL;
END $$;
CREATE TRIGGER management_clusters_registered
    AFTER INSERT ON plexsphere.management_clusters
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_cluster();

ALTER TABLE plexsphere.project_cluster_assignments ADD COLUMN events bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN plexsphere.project_cluster_assignments.events IS
    'Events told of the Project''s placement and namespace';
-- The way down keeps placements and events: what comes up again counts on.
UPDATE plexsphere.project_cluster_assignments AS placement SET events = told.last_sequence
FROM (
    SELECT aggregate_id, max(aggregate_sequence) AS last_sequence FROM plexsphere.outbox_events
    WHERE aggregate_type = 'Project' GROUP BY aggregate_id
) AS told
WHERE told.aggregate_id = placement.project_id;

CREATE FUNCTION plexsphere.tell_of_placement() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fresh boolean := TG_OP = 'INSERT';
    told  bigint;
    named jsonb := jsonb_build_object(
        'ProjectID', NEW.project_id, 'NamespaceName', NEW.namespace_name);
BEGIN
    told := CASE WHEN fresh THEN 0 ELSE OLD.events END;
    IF fresh OR NEW.management_cluster_id <> OLD.management_cluster_id THEN
        told := told + 1;
        PERFORM plexsphere.tell('Project', NEW.project_id, told,
            'managementfleet.ProjectClusterAssigned', NEW.updated_at,
            named || jsonb_build_object(
                'ManagementClusterID', NEW.management_cluster_id,
                'Region', coalesce(NEW.region, '')));
    END IF;
    -- A namespace never comes back from termination: what is ready again is another one.
    IF NOT fresh AND OLD.namespace_phase <> 'Deleted' AND (NEW.namespace_phase = 'Deleted' OR (
        OLD.namespace_phase = 'Terminating' AND NEW.namespace_phase <> 'Terminating'
    )) THEN
        told := told + 1;
        PERFORM plexsphere.tell('Project', NEW.project_id, told,
            'managementfleet.ProjectNamespaceTerminated', NEW.updated_at, named);
    END IF;
    IF NEW.namespace_phase = 'Ready' AND (fresh OR OLD.namespace_phase <> 'Ready') THEN
        told := told + 1;
        PERFORM plexsphere.tell('Project', NEW.project_id, told,
            'managementfleet.ProjectNamespaceReady', NEW.updated_at, named);
    END IF;
    NEW.events := told;
    RETURN NEW;
END $$;
CREATE FUNCTION plexsphere.count_placement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.events := CASE WHEN NEW.namespace_phase = 'Ready' THEN 2 ELSE 1 END;
    RETURN NEW;
END $$;
-- Counted before and told after an insertion: one that meets a conflict fires what comes before
-- it too, and nothing happened then.
CREATE TRIGGER project_cluster_assignments_counted
    BEFORE INSERT ON plexsphere.project_cluster_assignments
    FOR EACH ROW EXECUTE FUNCTION plexsphere.count_placement();
CREATE TRIGGER project_cluster_assignments_placed
    AFTER INSERT ON plexsphere.project_cluster_assignments
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_placement();
CREATE TRIGGER project_cluster_assignments_changed
    BEFORE UPDATE OF management_cluster_id, namespace_phase
    ON plexsphere.project_cluster_assignments
    FOR EACH ROW EXECUTE FUNCTION plexsphere.tell_of_placement();
