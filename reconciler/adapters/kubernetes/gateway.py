"""The effects on one management cluster, each guarded so that a late one is harmless.

Every write carries a uid, most the resourceVersion that was read, or is create-only by
name. Source: design §2, §5 "Several replicas and several clusters".
"""

from __future__ import annotations

from reconciler.adapters.kubernetes.access.checks import Checks
from reconciler.adapters.kubernetes.namespaces.credentials import CredentialObjects
from reconciler.adapters.kubernetes.namespaces.project_namespace import ProjectNamespaces
from reconciler.adapters.kubernetes.namespaces.project_rights import ProjectRights
from reconciler.adapters.kubernetes.namespaces.provider_configs import ProviderConfigs
from reconciler.adapters.kubernetes.namespaces.token_secrets import TokenSecrets
from reconciler.adapters.kubernetes.objects.protected_objects import ProtectedObjects
from reconciler.adapters.kubernetes.objects.records import Records
from reconciler.adapters.kubernetes.objects.writes import Effects, MayWrite, anybody
from reconciler.adapters.kubernetes.transport.client import KubernetesClient


class KubernetesGateway:
    """`ManagementCluster` over one API server."""

    def __init__(self, client: KubernetesClient, may_write: MayWrite = anybody) -> None:
        effects = Effects(client, may_write)
        rights = ProjectRights(client, effects)
        self.checks = Checks(client)
        self.namespaces = ProjectNamespaces(client, effects, rights)
        self.credentials = CredentialObjects(client, effects, rights)
        self.provider_configs = ProviderConfigs(client, effects, rights)
        self.token_secrets = TokenSecrets(client, effects, rights)
        self.substrates = ProtectedObjects(client, effects)
        self.records = Records(client, effects)
