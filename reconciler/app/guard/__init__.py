"""Keeps the controller from acting on a false view of its cluster.

`app.controller` consults it before it believes that something is gone.
"""
