"""The Kubernetes adapter: one client per management cluster, caches, and the gateway.

Belongs here: everything that speaks to an API server, through the official client. Not
here: what to do about what was seen. Imported by `reconciler.wiring` alone.
"""
