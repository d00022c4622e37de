"""A small client for one API server: apply, read, replace, delete.

Reading and writing objects on the official client's dynamic interface; `kubectl` may be
missing. Everything in `dev` and the end-to-end tests may import it.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from kubernetes import config
from kubernetes.client import VersionApi
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from dev.objects import Object, Source, documents, title
from dev.process import PROBE_TIMEOUT_S

FIELD_MANAGER = "broker-dev"

APPLY_TIMEOUT_S = 30.0
"""CRDs are established within a second or two; XRDs and namespaces within a few."""

RETRY_PAUSE_S = 0.25

REQUEST_TIMEOUT_S = 30.0
"""Per call; the API server's own limit is 60 s."""

RETRYABLE_STATUS = frozenset({404, 409, 429, 500, 503})
"""404: the namespace or the kind does not exist yet. 409: somebody else wrote in
between. 500: a webhook that does not answer yet. The others say "later" themselves."""


class KubeError(RuntimeError):
    """The API server did not do what was asked of it."""


class RefusedError(KubeError):
    """The API server refuses for good.

    Args:
        task: what was asked, as `<verb> <object>`.
        status: HTTP status.
        reason: the server's own words.
    """

    def __init__(self, task: str, status: int, reason: str) -> None:
        super().__init__(f"cannot {task}: {status} {reason}")
        self.status = status
        self.reason = reason


@contextlib.contextmanager
def refusals(task: str) -> Iterator[None]:
    """Turn the client's exceptions, which quote headers, into ours.

    Args:
        task: what is asked of the server, as `<verb> <object>`.

    Raises:
        RefusedError: in place of an `ApiException`.
        KubeError: the server was not reached.
    """
    try:
        yield
    except ApiException as error:
        reason = error.reason or ""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            reason = json.loads(error.body or "")["message"]
        raise RefusedError(task, error.status or 0, reason) from error
    except HTTPError as error:
        cause = type(getattr(error, "reason", None) or error).__name__
        message = f"cannot {task}: the API server is not reached: {cause}"
        raise KubeError(message) from error


class Cluster:
    """One API server, as the user of a kubeconfig.

    Args:
        kubeconfig_path: its current context is used.
        cache_dir: gets the discovery cache; one per API server, as ports are reused.

    Raises:
        KubeError: there is no such file, or it has no usable context.
    """

    def __init__(self, kubeconfig_path: Path, cache_dir: Path) -> None:
        self.kubeconfig = kubeconfig_path
        self._cache = cache_dir / f"discovery-{kubeconfig_path.stem}.json"
        new_client: Any = config.new_client_from_config
        try:
            self._api = new_client(config_file=str(kubeconfig_path))
        except config.ConfigException as error:
            message = f"cannot use kubeconfig {kubeconfig_path}: {error}"
            raise KubeError(message) from error
        self._lazy: Any = None

    def close(self) -> None:
        self._api.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _dynamic(self) -> Any:
        # Discovery talks to the server, which need not be up when this is constructed.
        if self._lazy is None:
            self._cache.unlink(missing_ok=True)
            dynamic: Any = DynamicClient
            self._lazy = dynamic(self._api, cache_file=str(self._cache))
        return self._lazy

    def resource(self, api_version: str, kind: str) -> Any:
        """Answer the dynamic client's handle of a kind.

        Raises:
            ResourceNotFoundError: the server does not serve it (yet).
        """
        prefix = "apis" if "/" in api_version else "api"
        with refusals("read which kinds the API server serves"):
            return self._dynamic.resources.get(prefix=prefix, api_version=api_version, kind=kind)

    def version(self) -> str:
        """Answer the API server's version, as `v1.34.4`."""
        with refusals(f"read the version of {self._api.configuration.host}"):
            found: Any = VersionApi(self._api).get_code(_request_timeout=PROBE_TIMEOUT_S)
        return str(found.git_version)

    def apply(self, *sources: Source, timeout_s: float = APPLY_TIMEOUT_S) -> list[Object]:
        """Server-side apply objects in order, repeating those that must wait for others.

        Args:
            sources: files, folders, or parsed objects.
            timeout_s: for all of them together.

        Returns:
            The objects as the server holds them, in the order they were accepted.

        Raises:
            KubeError: some were not accepted in time; names each with its last reason.
            RefusedError: the server refuses one for good.

        Idempotency: a second call changes nothing.
        """
        pending = list(documents(sources))
        deadline = time.monotonic() + timeout_s
        accepted: list[Object] = []
        while True:
            reasons: dict[str, str] = {}
            waiting = []
            for item in pending:
                try:
                    accepted.append(self._apply_one(item))
                except (ResourceNotFoundError, RefusedError) as error:
                    reasons[title(item)] = _reason_to_wait(error)
                    waiting.append(item)
            if not waiting:
                return accepted
            if time.monotonic() > deadline:
                listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
                message = f"cannot apply objects in {timeout_s:g} s: {listed}"
                raise KubeError(message)
            pending = waiting
            time.sleep(RETRY_PAUSE_S)

    def _apply_one(self, item: Object) -> Object:
        resource = self.resource(item["apiVersion"], item["kind"])
        with refusals(f"apply {title(item)}"):
            answer = resource.server_side_apply(
                body=item,
                field_manager=FIELD_MANAGER,
                force_conflicts=True,
                _request_timeout=REQUEST_TIMEOUT_S,
            )
        return cast("Object", answer.to_dict())

    def apply_status(self, item: Object) -> None:
        """Server-side apply an object's status subresource.

        Raises:
            RefusedError: the server refuses it.

        Idempotency: a second call changes nothing.
        """
        status = self.resource(item["apiVersion"], item["kind"]).status
        with refusals(f"apply status of {title(item)}"):
            status.server_side_apply(
                body=item,
                name=item["metadata"]["name"],
                namespace=item["metadata"].get("namespace"),
                field_manager=FIELD_MANAGER,
                force_conflicts=True,
                _request_timeout=REQUEST_TIMEOUT_S,
            )

    def get(
        self, api_version: str, kind: str, name: str, namespace: str | None = None
    ) -> Object | None:
        """Read one object; `None` when it, or its kind, does not exist.

        Raises:
            RefusedError: the server refuses to show it.
        """
        try:
            resource = self.resource(api_version, kind)
            with refusals(f"read {kind} {name}"):
                found = resource.get(
                    name=name, namespace=namespace, _request_timeout=REQUEST_TIMEOUT_S
                )
        except ResourceNotFoundError:
            return None
        except RefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return cast("Object", found.to_dict())

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
    ) -> list[Object]:
        """Read all objects of a kind; empty when the kind does not exist.

        Raises:
            RefusedError: the server refuses to show them.
        """
        try:
            resource = self.resource(api_version, kind)
            with refusals(f"list {kind}"):
                found = resource.get(
                    namespace=namespace,
                    label_selector=label_selector,
                    _request_timeout=REQUEST_TIMEOUT_S,
                )
        except ResourceNotFoundError:
            return []
        return cast("list[Object]", found.to_dict()["items"])

    def replace(self, item: Object) -> None:
        """Write an object that was read before, at the resource version it had.

        Raises:
            RefusedError: 409 when somebody wrote in between.
        """
        resource = self.resource(item["apiVersion"], item["kind"])
        with refusals(f"replace {title(item)}"):
            resource.replace(body=item, _request_timeout=REQUEST_TIMEOUT_S)

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str = "Background",
    ) -> None:
        """Ask for an object's deletion; `propagation` is Background, Foreground or Orphan.

        Raises:
            RefusedError: 404 when it does not exist; 403 when a policy holds it.
        """
        resource = self.resource(api_version, kind)
        with refusals(f"delete {kind} {name}"):
            resource.delete(
                name=name,
                namespace=namespace,
                body={"propagationPolicy": propagation},
                _request_timeout=REQUEST_TIMEOUT_S,
            )


def _reason_to_wait(error: ResourceNotFoundError | RefusedError) -> str:
    """Say why an apply must be repeated; raises what no waiting will cure."""
    if isinstance(error, ResourceNotFoundError):
        return "the server does not serve this kind"
    if error.status not in RETRYABLE_STATUS:
        raise error
    return f"{error.status} {error.reason}"
