"""Lifecycle events and the audit trail: types, payloads, envelope, delivery.

The store appends them in the transaction of the change, and the relay delivers them.
"""
