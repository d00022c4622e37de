"""Bootstrap tokens, registrations and nodes.

The node listener, the controller and the operators' listener read and write through it.
"""
