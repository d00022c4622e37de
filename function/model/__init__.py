"""The values that one composition is decided from and answered with.

`wire` makes them of a request, `inputs` and `compose` read them.
"""
