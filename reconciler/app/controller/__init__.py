"""Drives one management cluster while this process leads: watches and sweeps in, reconciles out.

`wiring.leader` runs a `Controller` for each term of leadership.
"""
