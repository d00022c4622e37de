"""Brings one record towards Ready: observes, decides, acts and writes the status.

`app.controller` calls `Reconciler` for each record whose turn it is.
"""
