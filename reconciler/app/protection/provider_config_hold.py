"""The ProviderConfig of an accepted declaration: made, taken care of, or refused.

When it is made and corrected. Source: design §2 "What holds it" 3; docs/decisions/0022.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

from function.contract.conditions import Reason
from reconciler.app.protection import credential_hold
from reconciler.app.status import publishing
from reconciler.domain.aggregate.errors import GoingError
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import provider_config, shared_hold
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.namespaces import SOMEBODY_ELSE
from reconciler.ports.cluster.substrates import NotAllowedError
from reconciler.ports.store.aggregates import HoldLedger

_log = logging.getLogger(__name__)

_Key = tuple[str, str]
"""Its apiVersion and name, in one namespace and of one credential."""


class ProviderConfigHold:
    """Keeps ProviderConfigs equal to what the catalogue says.

    Memory is one aggregate for each ProviderConfig: what it must say follows from any of its
    users. A process that starts learns them with its first sweep.
    """

    def __init__(self, holds: HoldLedger, cluster: ManagementCluster, catalog: Catalog) -> None:
        self._holds = holds
        self._cluster = cluster
        self._catalog = catalog
        self._users: defaultdict[tuple[str, str], dict[_Key, ProvisionedResource]]
        self._users = defaultdict(dict)

    async def ensure(self, resource: ProvisionedResource) -> Explanation | None:
        """Have the ProviderConfig that a declaration needs, as far as it can be resolved.

        Returns:
            Why there is none of ours; None when there is, or none is needed.

        Idempotency: compared before written; remembered before it is made.
        """
        manifest = publishing.provider_config_manifest(resource, self._catalog)
        if manifest is None:
            return None
        self._of(resource)[_key(manifest)] = resource
        return await self._ensure(manifest, resource)

    async def learn(self, resource: ProvisionedResource) -> None:
        """Look at the ProviderConfig of a node at rest that no other user has told of yet."""
        manifest = publishing.provider_config_manifest(resource, self._catalog)
        if manifest is not None and _key(manifest) not in self._of(resource):
            await self._follow(resource)

    async def follow(self, namespace: str, credential: str) -> None:
        """Have a credential's ProviderConfigs say what the catalogue says by now.

        Costs one read of the rows, and one GET for each of them, however many nodes use it. What
        stands in the way keeps no node from being Ready, and is logged.

        Idempotency: compared before written; one that nobody needs any more is not recreated.
        """
        users = self._users[namespace, credential]
        if not users:
            del self._users[namespace, credential]
            return
        held = await self._holds.list_in_namespace(namespace)
        needed = {(one.api_version, one.name) for one in held if one.credential == credential}
        for key, resource in list(users.items()):
            if key in needed:
                await self._follow(resource)
            else:
                del users[key]

    async def _follow(self, resource: ProvisionedResource) -> None:
        why = await self.ensure(resource)
        if why is not None:
            _log.warning(
                "provider_config_not_followed namespace=%s credential=%s reason=%s",
                resource.key.namespace, resource.accepted.cloud_credential, why.reason,
            )  # fmt: skip

    def _of(self, resource: ProvisionedResource) -> dict[_Key, ProvisionedResource]:
        return self._users[resource.key.namespace, resource.accepted.cloud_credential or ""]

    async def _ensure(
        self, manifest: dict[str, Any], resource: ProvisionedResource
    ) -> Explanation | None:
        own, name = resource.accepted.cloud_credential or "", manifest["metadata"]["name"]
        await self._holds.remember(shared_hold.provider_config(manifest, own))
        try:
            await self._cluster.provider_configs.ensure_provider_config(manifest)
        except GoingError as error:
            return credential_hold.going(error)
        except NotAllowedError as error:
            return Explanation(reason=Reason.RIGHTS_MISSING, message=f"{error}.")
        holder = await self._cluster.provider_configs.provider_config_holder(manifest)
        if holder is None or holder == own:
            return None
        if holder != SOMEBODY_ELSE:
            # Perhaps nobody's any more, of a creation that came late; the sweep looks who needs it.
            await self._holds.remember(shared_hold.provider_config(manifest, holder))
        message = provider_config.taken(name, None if holder == SOMEBODY_ELSE else holder)
        return Explanation(reason=Reason.PROVIDER_CONFIG_TAKEN, message=f"{message}.")


def _key(manifest: dict[str, Any]) -> _Key:
    return manifest["apiVersion"], manifest["metadata"]["name"]
