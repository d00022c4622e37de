"""What platform teams publish: Domain, Project, Cloud, CloudCredential, BlueprintVersion.

The function resolves declarations against these models, the reconciler admits by them, and
the CRDs are generated from them.
"""
