"""One folder per technology; each implements ports and knows no other adapter.

Drivers and the translation of their errors.
"""
