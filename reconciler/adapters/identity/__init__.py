"""Where secrets come from: tokens, node keys and signing keys.

Belongs here: the cryptographic sources. Not here: formats (`domain.identity`), storage.
Imported by `reconciler.wiring` alone.
"""
