"""One HTTP connection to one API server: requests, responses, kubeconfig, served versions.

Every other room of this adapter reads and writes through `KubernetesClient`.
"""
