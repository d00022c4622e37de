"""The objects of a Project: its namespace, RoleBinding, credentials, ProviderConfigs.

`gateway` calls it on behalf of the application.
"""
