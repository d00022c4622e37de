"""How fast the function is beside others, and what it costs.

Scenarios, contenders, a client, a table. A machine with other work on it lies about a
single figure, so contenders take turns and ratios are taken within a turn. `python -m
bench` and `python -m bench memory` run it. Source: issue "Speed".
"""
