"""The composition function: renders enrolment material inside a Crossplane pipeline.

Belongs here: the gRPC surface, the pure composing core, the renderers and the
contract both processes share (`function.contract`). Not here: clocks, random
numbers, networks, databases, Kubernetes clients. Nothing outside this package
imports more of it than `function.contract`.
"""
