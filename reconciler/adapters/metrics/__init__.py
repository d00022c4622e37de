"""What `/metrics` shows of the reconciler.

Belongs here: the registry and the families of process, driver and caches. Not here: the
events' own (`adapters.events.meter`) and when something is counted. Imported by wiring alone.
"""
