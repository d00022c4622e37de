"""Publishes the status of records and the Kubernetes Events that go with it.

`app.converge`, `app.teardown` and `app.replacement` write through `Publisher`.
"""
