"""Admits a declaration: catalogue, namespace, rights and parameters, before anything is stored.

`app.converge` and `app.teardown` call `Service`.
"""
