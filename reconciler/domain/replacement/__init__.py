"""When a machine whose node does not register is replaced, and how the aggregate changes.

`app.replacement` asks for the next step.
"""
