"""Bootstrap tokens, and for how long nodes could get through, on fakes."""
