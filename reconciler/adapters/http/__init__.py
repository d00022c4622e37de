"""The two listeners: one for nodes, one for operators.

Decoding, problem documents, limits, TLS.
"""
