"""Takes a node out of the mesh and then lets its substrate go, in that order.

`app.converge` and `app.controller` call `Teardown` for each aggregate that is being deleted.
"""
