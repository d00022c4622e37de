"""What `/metrics` shows of the reconciler.

The registry and the families of process, driver and caches.
"""
