"""Developer tools: a real control plane, Postgres and a demo cloud as host processes.

Belongs here: building and starting what `make demo`, `make up` and the end-to-end
tests run against. Not here: anything a user installs; neither `function` nor
`reconciler` may import this package. Tests and the Makefile may.
"""
