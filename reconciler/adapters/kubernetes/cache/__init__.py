"""List-and-watch caches of single kinds, kept small.

`cluster` opens them; the catalogue is answered from them.
"""
