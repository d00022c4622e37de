"""What `broker serve` and `broker migrate` say when they cannot start: one line, and a status."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.commands.store import EXIT_FAILED, EXIT_SETTINGS
from reconciler.main import cli
from tests.unit.reconciler.kubernetes.test_kubeconfig import GOOD
from tests.unit.reconciler.settings.test_settings import PASSWORD, REQUIRED


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(GOOD))
    return path


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def _run(command: str, **environ: str) -> Result:
    return CliRunner().invoke(cli, [command], env={**REQUIRED, **environ})


@pytest.mark.parametrize("text", ["", PASSWORD, "a: [b", "current-context: c"])
def test_a_kubeconfig_that_is_none_is_a_wrong_setting(text: str, kubeconfig: Path) -> None:
    kubeconfig.write_text(text)

    result = _run("serve", KUBECONFIG=str(kubeconfig))

    (line,) = result.output.splitlines()
    assert line.startswith("broker: KUBECONFIG: ")
    assert PASSWORD not in line
    assert result.exit_code == EXIT_SETTINGS


def test_neither_kubeconfig_nor_pod_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)

    result = _run("serve")

    assert result.output == "broker: KUBECONFIG: must be set outside a Pod\n"
    assert result.exit_code == EXIT_SETTINGS


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_a_database_that_does_not_answer_is_named_by_its_knob(
    command: str, kubeconfig: Path, closed_port: int
) -> None:
    dsn = f"postgresql://broker:{PASSWORD}@127.0.0.1:{closed_port}/broker"

    result = _run(command, KUBECONFIG=str(kubeconfig), PLEXSPHERE_DSN=dsn)

    (line,) = result.output.splitlines()
    assert "PLEXSPHERE_DSN names a server that does not answer" in line
    assert PASSWORD not in line
    assert result.exit_code == EXIT_FAILED


@pytest.mark.parametrize("command", ["serve", "migrate"])
@pytest.mark.parametrize(
    "query", ["sslmode=bogus", "port=99999", "port=x", "sslmode=verify-full&sslrootcert=/nowhere"]
)
def test_an_option_that_cannot_be_used_is_named_by_its_knob(
    command: str, query: str, kubeconfig: Path
) -> None:
    dsn = f"postgresql://broker:{PASSWORD}@/broker?host=127.0.0.1&{query}"

    result = _run(command, KUBECONFIG=str(kubeconfig), PLEXSPHERE_DSN=dsn)

    (line,) = result.output.splitlines()
    assert "PLEXSPHERE_DSN" in line
    assert PASSWORD not in line
    assert result.exit_code == EXIT_FAILED
