DROP TABLE plexsphere.shared_holds;
