"""Values in, plain dicts and text out: everything that is written into a substrate. Pure.

`function.compose` calls it.
"""
