"""The documents that enrol a machine or a cluster: cloud-init, Helm values, DaemonSet bundle.

`compose` renders them for a node; `broker render` prints the bundle.
"""
