"""Relays events from the outbox to the sink, in order for each aggregate.

`wiring.relay` runs it beside the controller.
"""
