"""The kinds that platform teams publish: Domain, Project, Cloud, credential, BlueprintVersion.

The function resolves declarations against these models, the reconciler admits by them, and
the CRDs are generated from them.
"""
