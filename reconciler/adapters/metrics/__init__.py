"""What `/metrics` shows of the reconciler.

The registry and the families of process, controller and caches.
"""
