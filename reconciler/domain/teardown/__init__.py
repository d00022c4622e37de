"""The order of a deletion: node, substrate, siblings, finalizer.

`app.teardown` asks these tables for the next step of each deletion.
"""
