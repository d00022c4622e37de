"""The ports of the application layer, as Protocols and plain values.

Adapters implement them without inheriting; one contract suite runs on the fake and on the
real adapter.
"""
