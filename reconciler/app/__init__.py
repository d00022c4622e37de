"""Orchestration over ports: observe, decide, act, record.

`reconciler.wiring` builds these classes from adapters.
"""
