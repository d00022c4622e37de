"""Plans one reconcile of a living record, from the facts that were observed at its beginning.

`app.converge` carries the plan out.
"""
