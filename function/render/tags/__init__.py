"""Labels as cloud tags: what each cloud accepts, and where a resource takes them.

`compose` tags substrates through it.
"""
