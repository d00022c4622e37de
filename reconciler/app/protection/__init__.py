"""Places and releases the holds on substrates, siblings, credentials and namespaces.

`app.converge` places them and `app.teardown` releases them.
"""
