"""The two listeners: one for nodes, one for operators.

Belongs here: decoding, problem documents, limits, TLS. Not here: deciding what a request
gets (`app.enrolment`). aiohttp is imported below this folder alone.
"""
