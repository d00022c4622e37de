"""One folder per technology; each implements ports and knows no other adapter.

Belongs here: drivers and the translation of their errors. Not here: decisions. Imported
by `reconciler.wiring` alone.
"""
