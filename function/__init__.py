"""The composition function: renders enrolment material inside a Crossplane pipeline.

The gRPC surface, the pure composing core, the renderers and the contract both processes
share (`function.contract`). Nothing outside this package imports more of it than
`function.contract`.
"""
