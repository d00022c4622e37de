"""The hold on what a credential is made of while a node may need it to be taken down.

When the hold goes on and off, and when the ProviderConfig goes. What is held is remembered
before, because its name cannot be computed again once its CloudCredential left Git or was
edited. Source: design §2 "What holds it" 3; kinds.md `CloudCredential`;
docs/decisions/0011.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from function.contract import names
from function.contract.catalog.published import CloudCredentialSpec
from function.contract.conditions import Reason
from reconciler.domain.aggregate.errors import GoingError
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.protection import external_secret, shared_hold
from reconciler.domain.protection.shared_hold import SharedHold, Use
from reconciler.ports.cluster.catalog import Catalog
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.namespaces import Needed
from reconciler.ports.store.aggregates import BrokerRepository, HoldLedger

SETTLE_MAX: Final = 3
"""Rounds until rows and label agree: one writes, one finds that a sibling came or went
meanwhile, or the Secret that a ProviderConfig still referred to; a third needs two such in
the same moment. The sweep does the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the rows say of one credential.

    Attributes:
        credentials: Those that are used and share a Secret with it, itself included.
        kept: What is held for it and needed.
        loose: What is held for it and needed by nobody, in the order in which it goes.
    """

    credentials: frozenset[str]
    kept: tuple[SharedHold, ...]
    loose: tuple[SharedHold, ...]


class CredentialHold:
    """Keeps the hold of credentials equal to their use."""

    def __init__(
        self,
        repository: BrokerRepository,
        holds: HoldLedger,
        cluster: ManagementCluster,
        catalog: Catalog,
    ) -> None:
        self._repository = repository
        self._holds = holds
        self._cluster = cluster
        self._catalog = catalog

    async def hold(self, namespace: str, credential: str) -> Explanation | None:
        """Hold what a credential in use is made of, as far as it is there.

        Returns:
            Why nothing brings its Secret, or why it cannot be held; None when something does, or
            it is there.

        Idempotency: compared before written. A Secret that comes later is held by the sweep.
        """
        spec = self._catalog.credential(credential)
        if spec is None:
            return None
        name = _secret(spec)
        await self._holds.remember(shared_hold.secret(namespace, name, credential))
        rendered, taken = True, False
        if spec.secret_store_ref is not None:
            manifest = external_secret.manifest(
                namespace=namespace, vault=spec.vault, store=spec.secret_store_ref
            )
            rendered = await self._cluster.credentials.render_external_secret(manifest)
            taken = not rendered and await self._cluster.credentials.external_secret_taken(manifest)
        try:
            present = await self._cluster.credentials.hold_credentials(namespace, name, held=True)
        except GoingError as error:
            return going(error)
        if rendered or present:
            return None
        return _taken(credential, name) if taken else _missing(credential, name)

    async def loose(self) -> Sequence[tuple[str, str]]:
        """Return namespace and name of credentials with holds that nobody uses any more."""
        return await self._holds.list_loose()

    async def settle(
        self, namespace: str, credential: str, *, known: Sequence[SharedHold] = ()
    ) -> None:
        """Make what is held agree with what the rows say of the credential's use.

        Looks again after it wrote, so that of a node that comes and one that goes at the same
        time neither has the last word with an old answer.

        Args:
            namespace: Where the Secret is.
            credential: The CloudCredential's name.
            known: What the caller knows to be held, whether or not it was remembered.

        Idempotency: recomputed from the rows each time; a hold as it should be stays. What is
        let go is forgotten only afterwards, so that a crash between is settled by the sweep.
        """
        for hold in known:
            await self._holds.remember(hold)
        seen = await self._look(namespace, credential)
        for _ in range(SETTLE_MAX):
            await self._keep(namespace, seen)
            for hold in seen.loose:
                await self._let_go(hold)
            before, seen = seen, await self._look(namespace, credential)
            if seen.credentials == before.credentials and not seen.loose:
                return

    async def _look(self, namespace: str, credential: str) -> _Seen:
        held = await self._holds.list_in_namespace(namespace)
        own = [item for item in held if item.credential == credential]
        secrets = {item.name for item in own if item.is_secret}
        uses = await self._uses(namespace, held)
        sharing = [
            use
            for use in uses
            if use.credential == credential or not use.secrets.isdisjoint(secrets)
        ]
        loose = [item for item in own if not shared_hold.needed(item, uses)]
        return _Seen(
            credentials=frozenset(use.credential for use in sharing),
            kept=tuple(item for item in own if item not in loose),
            # A provider needs the Secret until its ProviderConfig is gone.
            loose=tuple(sorted(loose, key=lambda item: item.is_secret)),
        )

    async def _uses(self, namespace: str, held: Sequence[SharedHold]) -> list[Use]:
        uses: list[Use] = []
        for user in await self._repository.credential_uses(namespace):
            secrets = {item.name for item in held if item.credential == user.credential}
            spec = self._catalog.credential(user.credential)
            if spec is not None:
                secrets.add(_secret(spec))
            secrets_of = frozenset(secrets)
            uses.append(Use(credential=user.credential, enrolled=user.enrolled, secrets=secrets_of))
        return uses

    async def _keep(self, namespace: str, seen: _Seen) -> None:
        for credential in sorted(seen.credentials):
            await self.hold(namespace, credential)
        for item in seen.kept:
            spec = self._catalog.credential(item.credential)
            if item.is_secret and (spec is None or _secret(spec) != item.name):
                # What goes is looked at again by the next sweep.
                with contextlib.suppress(GoingError):
                    await self._cluster.credentials.hold_credentials(
                        namespace, item.name, held=True
                    )

    async def _let_go(self, hold: SharedHold) -> None:
        """Release what nobody needs.

        It is marked first: who needs it from then on takes the mark off, and who did before
        is among the rows.
        """
        marked = await self._holds.loosen(hold)
        if marked is None:
            return

        async def needed() -> bool:
            held = await self._holds.list_in_namespace(hold.namespace)
            return shared_hold.needed(hold, await self._uses(hold.namespace, held))

        if hold.is_secret:
            await self._cluster.credentials.hold_credentials(
                hold.namespace, hold.name, held=False, needed=needed
            )
        elif (
            await self._cluster.provider_configs.provider_config_holder(hold.manifest)
            == hold.credential
        ):
            await self._delete(hold, needed)
        if await needed():
            await self._holds.remember(hold)
        else:
            await self._holds.forget(marked)

    async def _delete(self, config: SharedHold, needed: Needed) -> None:
        referred = await self._cluster.provider_configs.provider_config_secret(config.manifest)
        if referred is not None:
            secret = shared_hold.secret(config.namespace, referred, config.credential)
            await self._holds.remember(secret)
        await self._cluster.provider_configs.delete_provider_config(
            api_version=config.api_version,
            namespace=config.namespace,
            name=config.name,
            needed=needed,
        )


def going(error: GoingError) -> Explanation:
    """Say that something is waited for until it is gone."""
    return Explanation(
        reason=Reason.BEING_DELETED,
        message=f"{error}; waiting until it is gone to create or hold it again.",
    )


def _secret(spec: CloudCredentialSpec) -> str:
    return names.cloud_credentials_secret_name(mount=spec.vault.mount, path=spec.vault.path)


def _taken(credential: str, secret: str) -> Explanation:
    message = f"{external_secret.taken(secret, credential)}."
    return Explanation(reason=Reason.EXTERNAL_SECRET_TAKEN, message=message)


def _missing(credential: str, secret: str) -> Explanation:
    message = (
        f"CloudCredential {credential!r}: spec.secretStoreRef: {external_secret.KIND} in "
        f"{external_secret.API_VERSION} is not served here, so nothing creates Secret "
        f"{secret!r}; install External Secrets, or create the Secret."
    )
    return Explanation(reason=Reason.EXTERNAL_SECRETS_MISSING, message=message)
