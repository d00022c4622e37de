"""The two inputs of the function, `Declare` and `Enrol`: their schemas and what each asks for.

`function.fn` calls `declare` or `enrol` with a request and gets what the step composes.
"""
