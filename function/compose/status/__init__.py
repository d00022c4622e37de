"""Says on the XR what is so: one condition of each type, in full on every run.

`pipeline` asks for one node's conditions, `inputs` merges those of several.
"""
