"""Orchestration: observe, decide, act, record, over ports alone.

Belongs here: the order of effects and what a crash between two of them leaves behind. Not
here: drivers, SQL, HTTP, manifests' details. Imported by `reconciler.wiring`.
"""
