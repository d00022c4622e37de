"""Replaces a machine whose node does not register, or stops after the last attempt.

`app.converge` asks it on each reconcile of a machine that should have registered.
"""
