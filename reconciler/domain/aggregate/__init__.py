"""The ProvisionedResource aggregate: identity, phase, invariants, errors.

Every decision reads it; `app` changes it through its methods and the store keeps it.
"""
