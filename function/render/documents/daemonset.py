"""The bundle that a Kubernetes cluster applies to run a self-enrolling plexd DaemonSet.

What a bundle is made of, its checks, and the objects around the pod. Fails closed, naming
the field and never a value. Source: seed 003, "The DaemonSet bundle" and "Two
token-delivery modes".
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any, Final, assert_never

from function.contract.catalog.tenancy import UUID_PATTERN
from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from function.render.documents import cloudinit, options, plexd_pod, yaml

Manifest = dict[str, Any]

NAMESPACE: Final = "plexsphere-system"
NAME: Final = "plexd"

_LABELS: Final = {
    "app.kubernetes.io/name": "plexd",
    "app.kubernetes.io/part-of": "plexsphere",
}
_PRIVILEGED: Final = {"pod-security.kubernetes.io/enforce": "privileged"}
"""Host network, host folders and added capabilities break every other level."""

_UUID: Final = re.compile(UUID_PATTERN)
_NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_HANDLE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_REMOTE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,1022}[\x21-\x7e])?")


@unique
class TokenDelivery(StrEnum):
    """The delivery of the token to the cluster; `UNSET` is refused, so forgetting fails closed."""

    UNSET = ""
    SECRET = "secret"  # noqa: S105 - the seeds' word for a mode
    ESO = "eso"


@unique
class Profile(StrEnum):
    """The pod profile: the seed's literal one, or one in which published plexd runs."""

    SEED = "seed"
    PLEXD = "plexd"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSetBundle:
    """The unchecked values that a bundle is rendered from.

    Attributes:
        api_url: Where the agent registers.
        plexd_image: By tag or digest, never `:latest`.
        token_delivery: Must be set.
        profile: Which pod.
        token: The bootstrap token; only in `secret` mode, where it is required.
        secret_store: Name of a ClusterSecretStore; only in `eso` mode, where it is required.
        remote_key: What the store calls the token; as `secret_store`.
        remote_property: Property of that key; only in `eso` mode.
        project_id: The Project's UUID; only in the `plexd` profile, where it is required.
        resource_handle: What registration names; as `project_id`.
        ca_bundle: PEM certificates to trust for the URL; only in the `plexd` profile.
        node: Host name of the one node to run on; None runs on every node.
    """

    api_url: str | None
    plexd_image: str | None
    token_delivery: TokenDelivery = TokenDelivery.UNSET
    profile: Profile = Profile.SEED
    token: TokenPlaintext | None = None
    secret_store: str | None = None
    remote_key: str | None = None
    remote_property: str | None = None
    project_id: str | None = None
    resource_handle: str | None = None
    ca_bundle: str | None = None
    node: str | None = None


def document(bundle: DaemonSetBundle) -> str:
    """Return the bundle as YAML, one document per object; the same for equal input.

    Raises:
        ContractError: As `manifests`.
    """
    return "".join(f"---\n{yaml.dump(manifest)}" for manifest in manifests(bundle))


def manifests(bundle: DaemonSetBundle) -> tuple[Manifest, ...]:
    """Return the bundle's objects in the order in which they are applied.

    They are the Namespace, what delivers the token, in the `plexd` profile a ConfigMap,
    and the DaemonSet.

    Raises:
        ContractError: A value is missing, breaks its rule, or belongs to another mode or
            profile than the selected one.
    """
    delivery = _delivery(bundle)
    match bundle.profile:
        case Profile.SEED:
            made = _seed(bundle, delivery)
        case Profile.PLEXD:
            made = _plexd(bundle, delivery)
        case _:
            assert_never(bundle.profile)
    # They share this module's constants, which nobody may change through them.
    return copy.deepcopy(made)


def _seed(bundle: DaemonSetBundle, delivery: Manifest) -> tuple[Manifest, ...]:
    _refuse(
        "is used by the plexd profile only",
        projectID=bundle.project_id,
        resourceHandle=bundle.resource_handle,
        caBundle=bundle.ca_bundle,
    )
    pod = plexd_pod.seed(
        image=options.image("plexdImage", bundle.plexd_image),
        api_url=options.http_url("apiURL", bundle.api_url),
    )
    return (_namespace({}), delivery, _daemonset(pod, bundle.node))


def _plexd(bundle: DaemonSetBundle, delivery: Manifest) -> tuple[Manifest, ...]:
    config = plexd_pod.config(
        api_url=options.http_url("apiURL", bundle.api_url),
        project_id=_matched(_UUID, "projectID", bundle.project_id, "a lower-case UUID"),
        handle=_matched(
            _HANDLE, "resourceHandle", bundle.resource_handle, "of letters, digits and . _ -"
        ),
    )
    files = {plexd_pod.CONFIG_KEY: yaml.dump(config)}
    if bundle.ca_bundle is not None:
        certificates = options.ca_bundle("caBundle", bundle.ca_bundle)
        files[plexd_pod.CA_KEY] = "".join(f"{pem}\n" for pem in certificates)
    pod = plexd_pod.plexd(
        image=options.image("plexdImage", bundle.plexd_image), trust=bundle.ca_bundle is not None
    )
    config_map = _object("v1", "ConfigMap", plexd_pod.CONFIG_MAP) | {"data": files}
    return (_namespace(_PRIVILEGED), delivery, config_map, _daemonset(pod, bundle.node))


def _delivery(bundle: DaemonSetBundle) -> Manifest:
    match bundle.token_delivery:
        case TokenDelivery.UNSET:
            raise ContractError(field="tokenDelivery", rule="must be secret or eso")
        case TokenDelivery.SECRET:
            return _secret(bundle)
        case TokenDelivery.ESO:
            return _external_secret(bundle)
        case _:
            assert_never(bundle.token_delivery)


def _secret(bundle: DaemonSetBundle) -> Manifest:
    _refuse(
        "is used in eso mode only",
        secretStore=bundle.secret_store,
        remoteKey=bundle.remote_key,
        remoteProperty=bundle.remote_property,
    )
    if bundle.token is None:
        raise ContractError(field="bootstrap.token", rule="is required in secret mode")
    content = {plexd_pod.SECRET_KEY: cloudinit.plaintext(bundle.token)}
    return _object("v1", "Secret", plexd_pod.SECRET) | {"type": "Opaque", "stringData": content}


def _external_secret(bundle: DaemonSetBundle) -> Manifest:
    _refuse("must not be given in eso mode", **{"bootstrap.token": bundle.token})
    store = _matched(_NAME, "secretStore", bundle.secret_store, "the name of an object")
    rule = "1 to 1024 printable ASCII characters without surrounding blanks"
    remote = {"key": _matched(_REMOTE, "remoteKey", bundle.remote_key, rule)}
    if bundle.remote_property is not None:
        remote["property"] = _matched(_REMOTE, "remoteProperty", bundle.remote_property, rule)
    spec = {
        # Once, on creation: the token is single-use, so reading it again is of no use.
        "refreshInterval": "0s",
        "secretStoreRef": {"kind": "ClusterSecretStore", "name": store},
        "target": {"name": plexd_pod.SECRET, "creationPolicy": "Owner"},
        "data": [{"secretKey": plexd_pod.SECRET_KEY, "remoteRef": remote}],
    }
    return _object("external-secrets.io/v1", "ExternalSecret", plexd_pod.SECRET) | {"spec": spec}


def _namespace(labels: dict[str, str]) -> Manifest:
    metadata = {"name": NAMESPACE, "labels": _LABELS | labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _daemonset(pod: Manifest, node: str | None) -> Manifest:
    if node is not None:
        host = _matched(_LABEL_NAME, "node", node, "a host name of at most 63 characters")
        pod = {"nodeSelector": {"kubernetes.io/hostname": host}} | pod
    selected = {"app.kubernetes.io/name": _LABELS["app.kubernetes.io/name"]}
    spec = {
        "selector": {"matchLabels": selected},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }
    return _object("apps/v1", "DaemonSet", NAME) | {"spec": spec}


def _object(api_version: str, kind: str, name: str) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": _LABELS}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _matched(pattern: re.Pattern[str], field: str, value: str | None, form: str) -> str:
    if not value:
        raise ContractError(field=field, rule="is required")
    if not pattern.fullmatch(value):
        raise ContractError(field=field, rule=f"must be {form}")
    return value


def _refuse(rule: str, **given: object) -> None:
    for field, value in given.items():
        if value is not None:
            raise ContractError(field=field, rule=rule)
