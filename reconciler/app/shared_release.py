"""What siblings share, and what goes with the last that needs it.

Belongs here: the ProviderConfig of a credential, the hold on its Secret, and the hold on a
namespace, at the end of a teardown. Not here: the teardown itself. Idempotency: counted
from the rows each time.
Source: design §2, "released last"; contracts §6 item 36.
"""

from __future__ import annotations

from typing import Any

from reconciler.app import publishing
from reconciler.app.broker_service import Service
from reconciler.app.credential_hold import CredentialHold
from reconciler.domain.broker import provider_config
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.ports.broker import (
    BrokerRepository,
)
from reconciler.ports.cluster import (
    Catalog,
    ManagementCluster,
)


class SharedRelease:
    """Releases what the last user of it leaves behind."""

    def __init__(
        self,
        repository: BrokerRepository,
        cluster: ManagementCluster,
        service: Service,
        catalog: Catalog,
    ) -> None:
        self._repository = repository
        self._cluster = cluster
        self._service = service
        self._catalog = catalog
        self._credentials = CredentialHold(repository, cluster, catalog)

    async def release(self, resource: ProvisionedResource, *, named: str | None) -> None:
        """Release what nobody needs any more.

        Called after the aggregate is stored as Deleted, so that of two that finish together
        the later one sees neither.

        Args:
            resource: The one that is Deleted.
            named: The ProviderConfig its status named; None when unknown. It stands in when
                the catalogue no longer holds what the name follows from.
        """
        namespace = resource.key.namespace
        others = await self._repository.list_in_namespace(namespace)
        credential = resource.accepted.cloud_credential
        users = [item for item in others if item.accepted.cloud_credential == credential]
        referred = None
        # Enrolled resources use their author's ProviderConfig and not ours.
        if not resource.enrolled and all(user.enrolled for user in users):
            referred = await self._release_provider_config(resource, named)
        if credential is not None and (not users or referred is not None):
            await self._credentials.settle(namespace, credential, referred=referred)
        await self._service.settle_namespace(namespace)

    async def _release_provider_config(
        self, resource: ProvisionedResource, named: str | None
    ) -> str | None:
        """Delete the ProviderConfig and return which Secret it referred to, if it was there."""
        name = self._name(resource) or named
        if name is None:
            return None
        own = resource.accepted.cloud_credential
        namespace = resource.key.namespace
        api_version = f"{resource.accepted.provider.value}.crossplane.io/{provider_config.VERSION}"
        metadata = {"name": name, "namespace": namespace}
        manifest: dict[str, Any] = {
            "apiVersion": api_version,
            "kind": "ProviderConfig",
            "metadata": metadata,
        }
        if await self._cluster.provider_config_holder(manifest) != own:
            return None
        referred = await self._cluster.provider_config_secret(manifest)
        await self._cluster.delete_provider_config(
            api_version=api_version, namespace=namespace, name=name
        )
        return referred

    def _name(self, resource: ProvisionedResource) -> str | None:
        resolved = publishing.resolve(resource, self._catalog)
        if resolved is None:
            return None
        blueprint, _, cloud = resolved
        return provider_config.name(blueprint, cloud, resource.accepted.cloud_credential or "")
