DROP TABLE plexsphere.driver_leases;
