"""The outbox of events: appending, relaying, notifying, repairing.

Writers append in their own transaction; the relay claims and publishes.
"""
