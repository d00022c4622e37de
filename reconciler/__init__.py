"""The reconciler: admits declarations, mints tokens, registers nodes, orders teardown.

The durable record in Postgres, the two HTTP listeners, the watch on provisioning records
and the command `broker`. Imports of the function package are limited to
`function.contract`.
"""
