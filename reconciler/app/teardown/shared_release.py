"""Releases what several nodes share, with the last that needs it.

The ProviderConfig of a credential, the hold on its Secret, and the hold on a namespace, at
the end of a teardown. Idempotency: counted from the rows each time. Source: design §2,
"released last"; contracts §6 item 36.
"""

from __future__ import annotations

from function.contract import names
from reconciler.app.protection.credential_hold import CredentialHold
from reconciler.app.status import publishing
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import provider_config, shared_hold
from reconciler.domain.protection.shared_hold import SharedHold
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.store.aggregates import BrokerRepository


class SharedRelease:
    """Releases what the last user of it leaves behind."""

    def __init__(
        self,
        repository: BrokerRepository,
        catalog: Catalog,
        credentials: CredentialHold,
    ) -> None:
        self._repository = repository
        self._catalog = catalog
        self._credentials = credentials

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
        credential = resource.accepted.cloud_credential
        uses = await self._repository.credential_uses(namespace)
        users = [use for use in uses if use.credential == credential]
        # Enrolled resources use their author's ProviderConfig and not ours.
        last = not users or (not resource.enrolled and all(user.enrolled for user in users))
        if credential is not None and last:
            known = self._known(resource, credential, named)
            await self._credentials.settle(namespace, credential, known=known)

    def _known(
        self, resource: ProvisionedResource, credential: str, named: str | None
    ) -> list[SharedHold]:
        """Name what may be held since before anything was remembered of it."""
        namespace = resource.key.namespace
        known: list[SharedHold] = []
        spec = self._catalog.credential(credential)
        if spec is not None:
            name = names.cloud_credentials_secret_name(mount=spec.vault.mount, path=spec.vault.path)
            known.append(shared_hold.secret(namespace, name, credential))
        config = None if resource.enrolled else self._config(resource, credential) or named
        if config is not None:
            version = self._api_version(resource)
            metadata = {"name": config, "namespace": namespace}
            manifest = {"apiVersion": version, "metadata": metadata}
            known.append(shared_hold.provider_config(manifest, credential))
        return known

    def _api_version(self, resource: ProvisionedResource) -> str:
        accepted = resource.accepted
        named = accepted.blueprint
        blueprint = None if named is None else self._catalog.blueprint(named.name)
        target = None if blueprint is None else blueprint.provider_config
        return provider_config.api_version(target, accepted.provider)

    def _config(self, resource: ProvisionedResource, credential: str) -> str | None:
        resolved = publishing.resolve(resource, self._catalog)
        if resolved is None:
            return None
        blueprint, _, cloud = resolved
        return provider_config.name(blueprint, cloud, credential)
