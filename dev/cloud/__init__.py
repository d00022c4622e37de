"""The demo cloud: a dev-only provider of ``Machine`` objects that boots the document it receives.

What belongs here: the provider (a controller), the machines' private roots, the download
server. What does not: anything the function or the reconciler needs, they must not know
this package exists. ``dev.stack``, tests and benchmarks may import it; ``dev.cloud.guest``
runs inside the machines and imports nothing of this package but ``document`` and
``decoding``.
"""
