"""One record on its way to Ready, on fakes."""
