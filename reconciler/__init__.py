"""The reconciler: admits declarations, mints tokens, registers nodes, orders teardown.

Belongs here: the durable record in Postgres, the two HTTP listeners, the watch on
provisioning records and the command `broker`. Not here: rendering of what
Crossplane composes, which is the function's work. Imports of the function package
are limited to `function.contract`.
"""
