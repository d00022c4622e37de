"""The decisions of the reconciler: pure, total, without a clock.

Values, state tables, closed sets.
"""
