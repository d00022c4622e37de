"""Projects and their namespaces, on fakes."""
