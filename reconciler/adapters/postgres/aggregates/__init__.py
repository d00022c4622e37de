"""The durable record of provisioned resources and of what is held for them.

The controller's repositories; each write checks the fence of the term it belongs to.
"""
