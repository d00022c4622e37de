"""`broker render daemonset`: what it reads, prints and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.main import cli

TOKEN = "psb_prod_abcdefghijklmnopqrstuvwxyz_node_aaaabbbbccccddddeeeeffffgg"
AGENT = ("--api-url", "https://api.example.org", "--plexd-image", "registry.example.org/plexd:v1")
SECRET = ("--token-delivery", "secret", *AGENT)
ESO = ("--token-delivery", "eso", "--secret-store", "openbao", "--remote-key", "acme/x", *AGENT)
PLEXD = ("--profile", "plexd", "--project-id", "0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b")


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(cli, ["render", "daemonset", *arguments], input=stdin)


def kinds(result: Result) -> list[str]:
    assert result.exit_code == 0, result.stderr
    return [item["kind"] for item in yaml.safe_load_all(result.stdout)]


def test_the_token_comes_from_stdin() -> None:
    result = run(*SECRET, "--token-file", "-", stdin=f"{TOKEN}\n")

    assert kinds(result) == ["Namespace", "Secret", "DaemonSet"]
    assert result.stdout.count(TOKEN) == 1
    assert result.stderr == ""


def test_the_token_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="ascii")

    assert TOKEN in run(*SECRET, "--token-file", str(file)).stdout


def test_an_external_secret_needs_no_token() -> None:
    assert kinds(run(*ESO)) == ["Namespace", "ExternalSecret", "DaemonSet"]


def test_the_profile_is_selected(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "ascii")

    result = run(*ESO, *PLEXD, "--resource-handle", "pr-1", "--ca-file", str(ca), "--node", "w-1")

    assert kinds(result) == ["Namespace", "ExternalSecret", "ConfigMap", "DaemonSet"]
    assert "MIIB" in result.stdout
    assert "kubernetes.io/hostname: w-1" in result.stdout


def test_both_profiles_are_explained() -> None:
    said = run("--help").stdout

    assert "seed   the reference document's pod" in said
    assert "plexd  what published plexd needs" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(SECRET, "bootstrap.token: is required in secret mode", id="no token"),
        pytest.param((*ESO, "--token-file", "-"), "bootstrap.token: must not", id="token for eso"),
        pytest.param((*SECRET, "--secret-store", "x"), "secretStore: is used", id="store"),
        pytest.param((*ESO, *PLEXD), "resourceHandle: is required", id="no handle"),
        pytest.param((*ESO, "--api-url", ""), "apiURL: is required", id="blank url"),
        pytest.param((*ESO, "--plexd-image", "x:latest"), "plexdImage: must not", id="latest"),
    ],
)
def test_a_refusal_is_one_line_and_names_field_and_rule(
    arguments: tuple[str, ...], said: str
) -> None:
    result = run(*arguments, stdin=TOKEN)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"broker: cannot render daemonset: {said}")
    assert result.stderr.count("\n") == 1
    assert TOKEN not in result.stderr


@pytest.mark.parametrize(
    ("token", "said"),
    [
        pytest.param(b"", "bootstrap.token: must hold 1 to 512", id="empty"),
        pytest.param(b"two EVIL words", "bootstrap.token: must hold 1 to 512", id="blank inside"),
        pytest.param(b"EVIL" * 1025, "--token-file: must hold at most 4096 bytes", id="large"),
        pytest.param("EVIL\u00e9".encode(), "--token-file: must hold ASCII text", id="no ASCII"),
    ],
)
def test_a_wrong_token_is_refused_unseen(token: bytes, said: str) -> None:
    result = run(*SECRET, "--token-file", "-", stdin=token)

    assert result.exit_code == 2
    assert said in result.stderr
    assert "EVIL" not in result.output


def test_a_delivery_must_be_chosen() -> None:
    result = run(*AGENT)

    assert result.exit_code == 2
    assert "--token-delivery" in result.stderr


def test_no_option_takes_a_token_and_no_variable_stands_for_one() -> None:
    result = CliRunner().invoke(
        cli,
        ["render", "daemonset", *SECRET],
        env=dict.fromkeys(("TOKEN", "TOKEN_FILE", "BROKER_RENDER_DAEMONSET_TOKEN_FILE"), TOKEN),
    )

    assert result.exit_code == 2
    assert "--token TEXT" not in run("--help").stdout


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    result = run(*SECRET, "--token-file", str(tmp_path / "none"))

    assert result.exit_code == 2
    assert "--token-file" in result.stderr
