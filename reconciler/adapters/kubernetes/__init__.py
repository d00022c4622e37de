"""The Kubernetes adapter: one client per management cluster, caches, and the gateway.

Everything that speaks to an API server, through the official client.
"""
