"""Reads and writes of single objects: records, substrates, token Secrets, Events.

`gateway` calls it on behalf of the application.
"""
