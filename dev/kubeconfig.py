"""Writes kubeconfig files, and reads a cluster out of them.

The file's shape, for a certificate and for a token, and which cluster a given file means.
Everything in `dev` and tests may import it.
"""

import base64
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dev import pki


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def certificate_user(pair: pki.Pair) -> dict[str, str]:
    """Describe a user who shows a client certificate."""
    return {
        "client-certificate-data": _base64(pair.certificate),
        "client-key-data": _base64(pair.key),
    }


def server(url: str, authority: bytes) -> dict[str, str]:
    """Describe an API server whose certificate `authority` (PEM) signed."""
    return {"server": url, "certificate-authority-data": _base64(authority)}


def document(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """Compose a kubeconfig with one cluster, one user and one current context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "broker", "cluster": dict(cluster)}],
        "users": [{"name": "broker", "user": dict(user)}],
        "contexts": [{"name": "broker", "context": {"cluster": "broker", "user": "broker"}}],
        "current-context": "broker",
    }


def current_cluster(config: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the cluster entry of the current context out of a parsed kubeconfig.

    Raises:
        ValueError: it has no current context, or that names an absent cluster.
    """
    contexts = {entry["name"]: entry["context"] for entry in config.get("contexts") or ()}
    clusters = {entry["name"]: entry["cluster"] for entry in config.get("clusters") or ()}
    name = config.get("current-context")
    context = contexts.get(name)
    if context is None or context.get("cluster") not in clusters:
        message = f"cannot read kubeconfig: current-context {name!r} names no cluster"
        raise ValueError(message)
    return dict(clusters[context["cluster"]])


def portable_cluster(path: Path) -> dict[str, Any]:
    """Read the current cluster of a kubeconfig so that a file elsewhere may name it too.

    The authority that the file only points to, perhaps relative to itself, comes along.

    Raises:
        ValueError: the file cannot be read, is no kubeconfig, or means no cluster.
    """
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        cluster = current_cluster(config if isinstance(config, Mapping) else {})
        authority = cluster.pop("certificate-authority", None)
        if authority is not None:
            data = (path.parent / authority).read_bytes()
            cluster.setdefault("certificate-authority-data", _base64(data))
    except (OSError, yaml.YAMLError) as error:
        # A parser's message would quote the file, which holds credentials.
        detail = error.strerror if isinstance(error, OSError) else "it is not YAML"
        place = error.filename if isinstance(error, OSError) else path
        message = f"cannot read kubeconfig {place}: {detail}"
        raise ValueError(message) from None
    return cluster


def write(path: Path, config: Mapping[str, Any]) -> Path:
    """Write a kubeconfig that only this user may read; answers `path`.

    Idempotency: replaces the file at once, so a reader never sees half of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}")
    partial.touch(mode=0o600)
    partial.write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")
    partial.replace(path)
    return path
