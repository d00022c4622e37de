"""Rights: our own, those of callers, and the admission policies that hold nodes.

`gateway` checks them at the start; the operators' listener reviews its callers.
"""
