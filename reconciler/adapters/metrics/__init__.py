"""The reconciler's metrics.

The registry and the families of process, controller and caches.
"""
