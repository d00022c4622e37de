"""Bootstrap tokens for machines, and the registration of the nodes that spend them.

The node listener calls `RegistrationService`; `app.converge` keeps tokens valid.
"""
