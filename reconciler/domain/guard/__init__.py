"""Judges whether an observation may be acted on: circuit breaker, lease, substrate identity.

`app.guard` and `app.converge` ask before they act on an absence.
"""
