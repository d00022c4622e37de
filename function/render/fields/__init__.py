"""Field paths, and which fields of a resource carry the bootstrap.

`compose` writes through it and reads back what was written.
"""
