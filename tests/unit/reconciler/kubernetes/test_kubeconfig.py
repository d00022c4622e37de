"""A kubeconfig that cannot be used is told by field and rule, and never by what is in it."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.kubeconfig import (
    KUBECONFIG_MAX_BYTES,
    KubeconfigError,
)

SECRET = "hunter2"
GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": SECRET}}],
}
NOT_PEM = "aHVudGVyMg=="
API = "client.authentication.k8s.io/v1"


def _with(path: str, value: object) -> str:
    """Return the good document with one field changed; a value of None takes it away."""
    document: Any = copy.deepcopy(GOOD)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    node = document
    for part in parents:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return yaml.safe_dump(document)


def _program(*args: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": API, "command": args[0], "args": list(args[1:])}}


USER = "users.0.user"
CLUSTER = "clusters.0.cluster"
BROKEN = [
    pytest.param("", "must be a kubeconfig", id="empty"),
    pytest.param(SECRET, "must be a kubeconfig", id="scalar"),
    pytest.param(f"- {SECRET}", "must be a kubeconfig", id="list"),
    pytest.param(f"{SECRET}: [b", "must be a kubeconfig in YAML", id="no-yaml"),
    pytest.param(f"a:\n\t- {SECRET}\n", "must be a kubeconfig in YAML", id="tab"),
    pytest.param("\udcff\udcffx", "must be a kubeconfig in YAML", id="binary"),
    pytest.param("#" * (KUBECONFIG_MAX_BYTES + 1), "at most", id="too-large"),
    pytest.param(_with("current-context", None), "current-context", id="no-context"),
    pytest.param(_with("current-context", SECRET), "current-context", id="context-unknown"),
    pytest.param(_with("contexts", None), "contexts", id="no-contexts"),
    pytest.param(_with("contexts", SECRET), "contexts", id="contexts-no-list"),
    pytest.param(_with("contexts.0.context", None), "context", id="context-empty"),
    pytest.param(_with("clusters.0.name", None), "clusters", id="cluster-nameless"),
    pytest.param(_with("contexts.0.context.cluster", SECRET), "cluster", id="cluster-unknown"),
    pytest.param(_with("contexts.0.context.user", SECRET), "user", id="user-unknown"),
    pytest.param(_with(f"{CLUSTER}.server", None), "server", id="no-server"),
    pytest.param(_with(f"{CLUSTER}.server", SECRET), "server", id="server-no-url"),
    pytest.param(
        _with(f"{CLUSTER}.certificate-authority-data", NOT_PEM), "certificate", id="ca-no-pem"
    ),
    pytest.param(
        _with(f"{CLUSTER}.certificate-authority", f"/nowhere/{SECRET}"), "file", id="ca-missing"
    ),
    pytest.param(
        _with(USER, {"client-certificate-data": NOT_PEM, "client-key-data": NOT_PEM}),
        "certificate",
        id="client-no-pem",
    ),
    pytest.param(
        _with(USER, {"client-certificate": f"/nowhere/{SECRET}"}), "file", id="client-missing"
    ),
    pytest.param(_with(USER, {"tokenFile": f"/nowhere/{SECRET}"}), "file", id="token-missing"),
    pytest.param(
        _with(USER, {"auth-provider": {"name": "oidc"}}), "credential", id="oidc-unconfigured"
    ),
    pytest.param(_with(USER, _program(f"/nowhere/{SECRET}")), "program", id="program-missing"),
    pytest.param(
        _with(USER, _program("/bin/sh", "-c", f"echo {SECRET} >&2; exit 3")),
        "program",
        id="program-fails",
    ),
    pytest.param(_with(USER, _program("/bin/echo", SECRET)), "program", id="program-mute"),
]


@pytest.mark.parametrize(("text", "rule"), BROKEN)
async def test_what_is_wrong_is_one_line_without_a_value(
    text: str, rule: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(text.encode(errors="surrogateescape"))

    with caplog.at_level(logging.DEBUG), pytest.raises(KubeconfigError) as refused:
        await (await open_client(path)).close()

    line = str(refused.value)
    assert rule in line
    assert "\n" not in line
    assert SECRET not in line
    assert SECRET not in caplog.text
    assert str(path) not in line


async def test_without_one_it_must_run_in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(KubeconfigError, match="must be set outside a Pod"):
        await open_client(None)


@pytest.mark.parametrize("user", [{"token": SECRET}, {}], ids=["token", "anonymous"])
async def test_a_good_one_opens(user: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(_with(USER, user))

    client = await open_client(path)

    await client.close()
