"""Developer tools: a real control plane, Postgres and a demo cloud as host processes.

Building and starting what `make demo`, `make up` and the end-to-end tests run against.
Tests and the Makefile may.
"""
