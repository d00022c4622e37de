"""The controller, its sweeps and its leader election, on fakes."""
