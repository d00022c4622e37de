"""The orphan sweep and retention, on fakes."""
