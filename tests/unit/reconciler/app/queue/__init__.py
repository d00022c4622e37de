"""The work queue and its lanes."""
