"""Reconciles Projects: id, namespace, status.

`app.controller` calls `ProjectReconciler` for each Project.
"""
