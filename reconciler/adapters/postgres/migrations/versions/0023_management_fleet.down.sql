DROP TABLE plexsphere.project_cluster_assignments;
DROP TABLE plexsphere.management_clusters;
