"""The work queue: keys, fair lanes, one worker at a time per key, back-off.

`app.controller` feeds it and works it off.
"""
