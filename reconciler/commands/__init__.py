"""Subcommands of `broker` beside `serve`.

One module per click command or group, from flags to one line per fault. Only
`reconciler.main` imports it.
"""
