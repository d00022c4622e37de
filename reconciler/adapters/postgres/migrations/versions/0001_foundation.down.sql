DROP TABLE plexsphere.projects;
DROP TABLE plexsphere.domains;
DROP TABLE plexsphere.outbox_events;
