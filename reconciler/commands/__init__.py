"""Subcommands of `broker` beside `serve`.

Belongs here: one module per click command or group, from flags to one line per fault. Not
here: what they print or check. Only `reconciler.main` imports it.
"""
