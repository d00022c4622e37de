"""What is held while a node needs it, on fakes."""
