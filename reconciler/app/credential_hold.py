"""The hold on a credential's Secret while a node may need it to be taken down.

Belongs here: when the hold goes on and off, and rendering the ExternalSecret. Not here: the
calls, and the ProviderConfig (`shared_release`).
Source: design §2 "What holds it" 3; kinds.md `CloudCredential`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from function.contract import names
from function.contract.catalog import CloudCredentialSpec
from function.contract.conditions import Reason
from reconciler.domain.broker import external_secret
from reconciler.domain.broker.resource import ProvisionedResource
from reconciler.domain.broker.verdicts import Why
from reconciler.ports.broker import BrokerRepository
from reconciler.ports.cluster import Catalog, ManagementCluster

SETTLE_MAX: Final = 3
"""Rounds until rows and label agree: one writes, one finds that a sibling came or went
meanwhile; a third needs two such in the same moment. The sweep does the rest."""


class CredentialHold:
    """Keeps the hold of credentials equal to their use."""

    def __init__(
        self, repository: BrokerRepository, cluster: ManagementCluster, catalog: Catalog
    ) -> None:
        self._repository = repository
        self._cluster = cluster
        self._catalog = catalog

    async def hold(self, namespace: str, credential: str) -> Why | None:
        """Hold what a credential in use is made of, as far as it is there.

        Returns:
            Why nothing brings its Secret; None when something does, or it is there.

        Idempotency: compared before written. A Secret that comes later is held by the sweep.
        """
        spec = self._catalog.credential(credential)
        if spec is None:
            return None
        rendered = True
        if spec.secret_store_ref is not None:
            manifest = external_secret.manifest(
                namespace=namespace, vault=spec.vault, store=spec.secret_store_ref
            )
            rendered = await self._cluster.render_external_secret(manifest)
        present = await self._cluster.hold_credentials(namespace, _secret(spec), held=True)
        return None if rendered or present else _missing(credential, _secret(spec))

    async def settle(self, namespace: str, credential: str, *, referred: str | None = None) -> None:
        """Make the hold agree with what the rows say of the credential's use.

        Looks again after it wrote, so that of a node that comes and one that goes at the same
        time neither has the last word with an old answer.

        Args:
            namespace: Where the Secret is.
            credential: The CloudCredential's name.
            referred: The Secret a ProviderConfig of it referred to. It stands in when the
                catalogue no longer holds the credential, or names another Secret by now.

        Idempotency: recomputed from the rows each time; a hold as it should be stays.
        """
        for _ in range(SETTLE_MAX):
            secrets = self._secrets(credential, referred)
            users = await self._users(namespace, credential, secrets)
            if users:
                for name in sorted({user.accepted.cloud_credential or "" for user in users}):
                    await self.hold(namespace, name)
            else:
                for name in secrets:
                    await self._cluster.hold_credentials(namespace, name, held=False)
            if bool(await self._users(namespace, credential, secrets)) == bool(users):
                return

    async def _users(
        self, namespace: str, credential: str, secrets: Sequence[str]
    ) -> list[ProvisionedResource]:
        """Return who is not Deleted and needs one of the Secrets.

        Two credentials with the same coordinates are one Secret.
        """
        unfinished = await self._repository.list_in_namespace(namespace)
        return [
            item
            for item in unfinished
            if item.accepted.cloud_credential == credential
            or not set(self._secrets(item.accepted.cloud_credential or "")).isdisjoint(secrets)
        ]

    def _secrets(self, credential: str, referred: str | None = None) -> list[str]:
        spec = self._catalog.credential(credential)
        found = {referred, None if spec is None else _secret(spec)}
        return sorted(name for name in found if name is not None)


def _secret(spec: CloudCredentialSpec) -> str:
    return names.cloud_credentials_secret_name(mount=spec.vault.mount, path=spec.vault.path)


def _missing(credential: str, secret: str) -> Why:
    message = (
        f"CloudCredential {credential!r}: spec.secretStoreRef: {external_secret.KIND} in "
        f"{external_secret.API_VERSION} is not served here, so that nothing makes Secret "
        f"{secret!r}; install External Secrets, or make the Secret."
    )
    return Why(reason=Reason.EXTERNAL_SECRETS_MISSING, message=message)
