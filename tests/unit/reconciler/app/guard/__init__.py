"""What is believed of a cluster, on fakes."""
