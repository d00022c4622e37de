"""Effects on one management cluster, each safe to repeat, and harmless when it comes late.

Source: seed 000 "Ports"; design §5 "Kubernetes".
"""

from __future__ import annotations

from typing import Protocol

from reconciler.ports.cluster.checks import ClusterChecks
from reconciler.ports.cluster.namespaces import (
    CredentialGateway,
    NamespaceGateway,
    ProviderConfigGateway,
    TokenSecretGateway,
)
from reconciler.ports.cluster.records import RecordGateway
from reconciler.ports.cluster.substrates import SubstrateGateway


class ManagementCluster(Protocol):
    """One management cluster, by the kinds of objects that are read and written there."""

    @property
    def checks(self) -> ClusterChecks:
        """The preconditions of provisioning on a management cluster."""
        ...

    @property
    def namespaces(self) -> NamespaceGateway:
        """The hold on Projects' namespaces."""
        ...

    @property
    def credentials(self) -> CredentialGateway:
        """The Secrets and ExternalSecrets that a credential is made of."""
        ...

    @property
    def provider_configs(self) -> ProviderConfigGateway:
        """The ProviderConfigs that the broker makes."""
        ...

    @property
    def token_secrets(self) -> TokenSecretGateway:
        """The Secrets that carry tokens to machines."""
        ...

    @property
    def substrates(self) -> SubstrateGateway:
        """Substrates, their siblings and their XRs: objects of any kind."""
        ...

    @property
    def records(self) -> RecordGateway:
        """ProvisioningRecords: status, finalizer, Events."""
        ...
