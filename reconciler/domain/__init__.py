"""The decisions of the reconciler: pure, total, without a clock.

Belongs here: values, state tables, closed sets. Not here: async, I/O, logging, time,
random numbers. Imported by ports, app and adapters; imports `function.contract` only.
"""
