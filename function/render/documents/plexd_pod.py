"""The plexd pod of a DaemonSet bundle, in its two profiles, and what the agent reads there.

Pod specs and file contents, from values that are already checked. Source: seed 003, "The
DaemonSet bundle"; contracts §1.2 and §2.4.
"""

from __future__ import annotations

from typing import Any, Final

from function.render.documents import cloudinit, install

Manifest = dict[str, Any]

SECRET: Final = "plexd-bootstrap-token"  # noqa: S105 - an object's name
SECRET_KEY: Final = "token"  # noqa: S105 - a key's name
CONFIG_MAP: Final = "plexd-config"
CA_KEY: Final = "ca.crt"

DIRECTORY, _, TOKEN_FILE = cloudinit.TOKEN_PATH.rpartition("/")
CONFIG_KEY: Final = install.CONFIG.rpartition("/")[2]

RUNTIME_ID: Final = 65532
"""User and group of the seed's pod; also fsGroup, which is what lets it read the token."""

TOKEN_MODE: Final = 0o440
"""Owner and group: a Secret's files belong to root, so 0400 would shut the agent out."""

DATA: Final = "/var/lib/plexd"
RUN: Final = "/var/run/plexd"
HEALTH_PORT: Final = 9101

_PROBE_PERIOD_S: Final = 10
_STARTUP_FAILURES: Final = 36
"""Six minutes: registration itself retries for five before it gives up."""

_RESOURCES: Final = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"cpu": "200m", "memory": "128Mi"},
}
"""The figures of plexd's own manifest; the seed gives none."""


def seed(*, image: str, api_url: str) -> Manifest:
    """Return the seed's hardened pod: it registers and can neither write nor route."""
    container = {
        "name": "plexd",
        "image": image,
        "args": [
            "register",
            f"--bootstrap-token-file={cloudinit.TOKEN_PATH}",
            f"--api-url={api_url}",
        ],
        "securityContext": _confined(),
        "resources": _RESOURCES,
        "volumeMounts": [_mount("bootstrap-token", DIRECTORY, read_only=True)],
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": RUNTIME_ID,
            "runAsGroup": RUNTIME_ID,
            "fsGroup": RUNTIME_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {
                "name": "bootstrap-token",
                "secret": {
                    "secretName": SECRET,
                    "defaultMode": TOKEN_MODE,
                    "items": [_token_item()],
                },
            }
        ],
    }


def plexd(*, image: str, trust: bool) -> Manifest:
    """Return a pod in which published plexd joins the mesh of the host.

    Args:
        image: By tag or digest.
        trust: Whether the ConfigMap holds certificates the agent must trust.
    """
    container: Manifest = {
        "name": "plexd",
        "image": image,
        "args": ["up", "--config", install.CONFIG],
        "securityContext": _confined(add=["NET_ADMIN", "NET_RAW"]),
        "resources": _RESOURCES,
        "startupProbe": {**_probe("/healthz"), "failureThreshold": _STARTUP_FAILURES},
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "volumeMounts": [
            _mount("etc", DIRECTORY, read_only=True),
            _mount("data", DATA),
            _mount("run", RUN),
        ],
    }
    if trust:
        # Go reads the system's certificate folders beside this file, not instead.
        container["env"] = [{"name": "SSL_CERT_FILE", "value": f"{DIRECTORY}/{CA_KEY}"}]
    return {
        "automountServiceAccountToken": False,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        # Root, less all capabilities but two: a container's added capabilities reach other
        # users only through file capabilities, which no-new-privileges switches off, and a
        # host folder that the kubelet makes belongs to root.
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "etc", "projected": {"defaultMode": TOKEN_MODE, "sources": _SOURCES}},
            _host_folder("data", DATA),
            _host_folder("run", RUN),
        ],
    }


def config(*, api_url: str, project_id: str, handle: str) -> Manifest:
    """Return the agent's configuration; nothing in it is secret."""
    return {
        "mode": "node",
        "data_dir": DATA,
        "api": {"base_url": api_url},
        "registration": {
            "project_id": project_id,
            "resource_handle": handle,
            "token_file": cloudinit.TOKEN_PATH,
        },
    }


def _token_item() -> Manifest:
    return {"key": SECRET_KEY, "path": TOKEN_FILE}


_SOURCES: Final = [
    {"secret": {"name": SECRET, "items": [_token_item()]}},
    {"configMap": {"name": CONFIG_MAP}},
]


def _confined(*, add: list[str] | None = None) -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]} | ({"add": add} if add else {}),
    }


def _probe(path: str) -> Manifest:
    # Its pod shares the host's network, so the kubelet reaches the agent's loopback.
    target = {"host": "127.0.0.1", "port": HEALTH_PORT, "path": path}
    return {"httpGet": target, "periodSeconds": _PROBE_PERIOD_S}


def _mount(name: str, path: str, *, read_only: bool = False) -> Manifest:
    return {"name": name, "mountPath": path} | ({"readOnly": True} if read_only else {})


def _host_folder(name: str, path: str) -> Manifest:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
