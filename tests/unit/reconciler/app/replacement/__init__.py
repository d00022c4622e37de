"""Machines whose nodes do not come, and substrates that were lost, on fakes."""
