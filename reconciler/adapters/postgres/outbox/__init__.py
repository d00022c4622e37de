"""The outbox of events: appending, relaying, notifying, mending.

Writers append in their own transaction; the relay claims and publishes.
"""
