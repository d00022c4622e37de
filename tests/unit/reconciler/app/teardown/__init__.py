"""The ordered teardown, on fakes."""
