"""The vocabulary both processes share: names, kinds, conditions, the record's shape.

Belongs here: values and rules that the function publishes and the reconciler conforms
to, on the standard library and pydantic alone. Not here: rendering, decisions, any
I/O. Anybody may import it; it imports nothing of ours outside this folder.
"""
