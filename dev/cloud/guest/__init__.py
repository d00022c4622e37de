"""What runs inside a machine: the private root, its process 1 and the cloud-init modules.

Standard library and PyYAML only, everything imported before the root is changed, because
afterwards the paths of this repository do not exist any more. Started by ``dev.cloud.boot``
as ``python -m dev.cloud.guest``; nobody else imports it, apart from tests of its pure
parts.
"""
