"""Imports a blueprint catalogue in the public plexsphere layout as BlueprintVersion manifests.

`broker catalog import` calls it; nothing else does.
"""
