"""The vocabulary both processes share: names, kinds, conditions, the record's shape.

Values and rules that the function publishes and the reconciler conforms to, on the standard
library and pydantic alone. Anybody may import it; it imports nothing of ours outside this
folder.
"""
