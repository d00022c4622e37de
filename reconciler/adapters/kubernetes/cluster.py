"""The client, the caches and the gateways of one management cluster.

Opening the client and running the caches of our kinds. One of these exists per management
cluster.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException

from function.contract import names
from reconciler.adapters.kubernetes.cache.cached_catalog import CachedCatalog
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.cache.packed import Key
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.adapters.kubernetes.namespaces.projects import KubernetesProjectGateway
from reconciler.adapters.kubernetes.transport.client import METADATA_ONLY, KubernetesClient
from reconciler.adapters.kubernetes.transport.kubeconfig import KubeconfigError, check
from reconciler.domain.guard.circuit_breaker import BreakerCause

_KINDS = ("provisioningrecords", "projects", "domains", "blueprintversions",
          "cloudcredentials", "clouds")  # fmt: skip
TOKEN_REREAD_S: Final = 60.0
"""How old a kubeconfig's token may get; the official client reads a Pod's as often."""

_UNUSABLE: Final = (ConfigException, OSError, ValueError, TypeError, LookupError, AttributeError)
"""The official client indexes what it did not check."""

OnChange = Callable[[str, Key], None]
"""Hears the plural of a kind and the key of what changed."""


def _without_details(record: logging.LogRecord) -> bool:
    """Keep that it failed: the text quotes what a credential program wrote."""
    record.msg, record.args = "kubeconfig_credential_unusable", ()
    record.exc_info = record.exc_text = None
    return True


logging.getLogger("kubernetes.aio.config.kube_config").addFilter(_without_details)


class Cluster:
    """Client, caches and gateways of one management cluster.

    Attributes:
        on_doubt: Hears why an answer may be of another time than it claims.
    """

    def __init__(
        self,
        client: KubernetesClient,
        *,
        on_change: OnChange,
    ) -> None:
        self.client = client
        self.on_doubt: Callable[[BreakerCause], None] = lambda _cause: None
        self.caches = {
            kind: ObjectCache(
                client,
                f"/apis/{names.API_VERSION}/{kind}",
                on_change=lambda key, kind=kind: on_change(kind, key),  # type: ignore[misc]  # mypy cannot type a default in a lambda
                on_doubt=self._doubted,
            )
            for kind in _KINDS
        }
        self.records = self.caches["provisioningrecords"]
        self.projects = self.caches["projects"]
        self.gateway = KubernetesGateway(client)
        self.project_gateway = KubernetesProjectGateway(client, domains=self.caches["domains"])
        self.catalog = CachedCatalog(
            blueprints=self.caches["blueprintversions"],
            credentials=self.caches["cloudcredentials"],
            clouds=self.caches["clouds"],
            projects=self.projects,
        )

    def _doubted(self, cause: BreakerCause) -> None:
        self.on_doubt(cause)

    def silent_s(self) -> float:
        """Return for how many seconds the most silent cache heard nothing."""
        return max(cache.silent_s for cache in self.caches.values())

    async def record_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a record is there, by a live GET."""
        path = f"/apis/{names.API_VERSION}/namespaces/{namespace}/provisioningrecords/{name}"
        return await self.client.get(path, accept=METADATA_ONLY) is not None

    async def run(self) -> None:
        """Keep the caches true until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self.caches.values():
                group.create_task(cache.run())

    async def wait_synced(self) -> None:
        """Wait until every cache has its first list."""
        for cache in self.caches.values():
            await cache.wait_synced()


async def open_client(kubeconfig: Path | None, *, context: str | None = None) -> KubernetesClient:
    """Open a client from a kubeconfig, or from the Pod's service account when None.

    Tokens that expire are read again, from the Pod's file, the kubeconfig's file or its
    credential program.

    Args:
        kubeconfig: The file.
        context: The kubeconfig's context; None takes its current one.

    Raises:
        KubeconfigError: There is neither, or it cannot be used.
    """
    configuration = Configuration()
    if kubeconfig is None:
        _load_service_account(configuration)
    else:
        check(kubeconfig, context)
        await _load(kubeconfig, configuration, context)
    # Otherwise each request reads `.netrc` and the environment on a thread, and what a `.netrc`
    # says of the host, or by default, would be sent there.
    configuration.client_session_kwargs = {"trust_env": _behind_proxy(configuration.host)}
    try:
        return KubernetesClient(ApiClient(configuration))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        message = "must refer to certificates and keys in PEM"
        raise KubeconfigError(message) from error


def _behind_proxy(server: str) -> bool:
    """Tell whether the environment has a proxy for a server, which aiohttp then finds."""
    url = urlsplit(server)
    return url.scheme in getproxies() and not proxy_bypass(url.netloc)


def _load_service_account(configuration: Configuration) -> None:
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        message = "must be set outside a Pod"
        raise KubeconfigError(message) from error


async def _load(kubeconfig: Path, configuration: Configuration, context: str | None) -> None:
    try:
        loader = await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except _UNUSABLE as error:
        message = "must refer to files and credentials that can be read"
        raise KubeconfigError(message) from error
    # The official client only logs that a credential program failed, and would go on as nobody.
    program = "exec" in (loader._user or ())
    if program and not configuration.api_key and configuration.cert_file is None:
        message = "users[].user.exec: must be a program that returns a credential"
        raise KubeconfigError(message)
    configuration.refresh_api_key_hook = _renewal(loader)  # type: ignore[assignment]  # typed as None upstream


def _renewal(loader: Any) -> Callable[[Configuration], Awaitable[None]]:
    """Return what the client calls before each request; it reads nothing again by itself."""
    read_at = time.monotonic()

    async def renew(configuration: Configuration) -> None:
        nonlocal read_at
        if time.monotonic() - read_at >= TOKEN_REREAD_S:
            read_at = time.monotonic()
            await loader.load_and_set(configuration)

    return renew
