"""Values in, plain dicts and text out: what is written into a substrate.

Belongs here: the enrolment document, the injection sites, cloud tags, user-data limits.
Not here: when something is rendered (`function.compose`), any reading of objects. Pure:
no clock, no randomness, no logging. `function.compose` imports it, it imports the
contract alone.
"""
