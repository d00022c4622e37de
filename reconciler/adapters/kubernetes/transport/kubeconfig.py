"""Checks a kubeconfig before the official client reads it.

Reading the file and checking its shape, so that a fault is told by field and rule. No
message of it is passed on: it quotes the file, and that holds tokens and keys. Source:
Kubernetes, "Organizing Cluster Access Using kubeconfig Files".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import yaml

KUBECONFIG_MAX_BYTES: Final = 1024 * 1024
"""A Secret's limit, which is where one comes from; a hundred clusters take a tenth of it."""


class KubeconfigError(Exception):
    """There is no usable way to a cluster; the message is the rule and never a value."""


def check(path: Path, context: str | None = None) -> str:
    """Check that a file names a cluster to talk to, and as whom.

    Args:
        path: The file.
        context: One of its contexts; None takes the current one.

    Returns:
        The context's namespace; `default` where it names none.

    Raises:
        KubeconfigError: It cannot be read, is no kubeconfig, or refers to what it lacks.
    """
    document = _document(path)
    named, at = (document.get("current-context"), "current-context")
    if context is not None:
        named, at = context, "--context"
    found = _entry(document, "context", named, at=at)
    cluster = _entry(document, "cluster", found.get("cluster"), at="contexts[].context.cluster")
    if not _is_url(cluster.get("server")):
        _refuse("clusters[].cluster.server: must be an absolute http(s) URL")
    if "user" in found:
        _entry(document, "user", found["user"], at="contexts[].context.user")
    namespace = found.get("namespace")
    return namespace if isinstance(namespace, str) and namespace else "default"


def _document(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(KUBECONFIG_MAX_BYTES + 1)
    except OSError:
        _refuse("must name a file that can be read")
    if len(content) > KUBECONFIG_MAX_BYTES:
        _refuse(f"must name a file of at most {KUBECONFIG_MAX_BYTES} bytes")
    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError):
        _refuse("must be a kubeconfig in YAML")
    if not isinstance(document, dict):
        _refuse("must be a kubeconfig, with clusters, contexts and users")
    return document


def _entry(document: dict[str, Any], kind: str, name: object, *, at: str) -> dict[str, Any]:
    """Return the one entry of a list that a reference names."""
    listed = document.get(f"{kind}s")
    if not isinstance(listed, list) or not all(_is_named(item) for item in listed):
        _refuse(f"{kind}s: must be a list of named entries")
    found = [item for item in listed if item["name"] == name]
    if len(found) != 1:
        _refuse(f"{at}: must name one entry of {kind}s")
    entry = found[0].get(kind)
    # A user without credentials is a legal one, and is written as nothing at all.
    if entry is None and kind == "user":
        entry = {}
    if not isinstance(entry, dict):
        _refuse(f"{kind}s[].{kind}: must be a mapping")
    return entry


def _is_named(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str)


def _is_url(value: object) -> bool:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
    except ValueError:
        return False
    return parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname)


def _refuse(rule: str) -> NoReturn:
    raise KubeconfigError(rule) from None
