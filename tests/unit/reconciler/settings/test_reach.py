"""Where a connection string leads, by our reading and by the driver's own."""

from __future__ import annotations

import pytest
from asyncpg import connect_utils
from click.testing import CliRunner

from reconciler.main import cli
from reconciler.settings import reach
from tests.unit.reconciler.settings.test_settings import REQUIRED

HERE = [
    ("postgresql:///broker", {}),
    ("postgresql://u:p@/broker", {}),
    ("postgresql://u:p@localhost/broker", {}),
    ("postgresql://u:p@127.0.0.1:5432/broker", {}),
    ("postgresql://u:p@127.9.9.9/broker", {}),
    ("postgresql://u:p@[::1]:5432/broker", {}),
    ("postgresql://u:p@%2Fvar%2Frun%2Fpostgresql/broker", {}),
    ("postgresql:///broker?host=/var/run/postgresql", {}),
    ("postgresql:///broker?host=db.example.org&host=localhost", {}),
    ("postgresql://u:p@localhost:1,127.0.0.1:2/broker", {}),
    ("postgresql://u:p@localhost/broker?host=db.example.org", {}),
    ("postgresql:///broker", {"PGHOST": "/tmp"}),
    ("postgresql:///broker", {"PGHOST": "localhost,[::1]"}),
    ("postgresql://u:p@localhost/broker", {"PGHOST": "db.example.org"}),
    ("postgresql://u:p@localhost/broker?sslmode=disable", {}),
]
"""Every host is this machine."""
AWAY = [
    ("postgresql://u:p@db.example.org/broker", {}),
    ("postgresql://u:p@10.0.0.5/broker", {}),
    ("postgresql://u:p@[2001:db8::1]:5432/broker", {}),
    ("postgresql://u:p@localhost,db.example.org/broker", {}),
    ("postgresql://u:p@localhost.example.org/broker", {}),
    ("postgresql://u:p@127.0.0.1.example.org/broker", {}),
    ("postgresql://u:p@db%2Eexample.org/broker", {}),
    ("postgresql://u:p@localhost@db.example.org/broker", {}),
    ("postgresql:///broker?host=db.example.org", {}),
    ("postgresql:///broker?host=localhost,db.example.org", {}),
    ("postgresql:///broker?host=localhost&host=db.example.org", {}),
    ("postgresql:///broker", {"PGHOST": "db.example.org"}),
    ("postgresql:///broker", {"PGHOST": "/tmp,db.example.org"}),
    ("postgresql://0.0.0.0/broker", {}),
]
"""At least one is another's."""


def _private(dsn: str, environ: dict[str, str]) -> bool:
    return reach.is_private(dsn, host=environ.get("PGHOST"), mode=environ.get("PGSSLMODE"))


def _addresses(dsn: str) -> list[str | tuple[str, int]]:
    """Return where the driver would connect to; sockets are paths."""
    absent = dict.fromkeys(
        (
            "host", "port", "user", "password", "passfile", "database", "ssl", "service",
            "servicefile", "direct_tls", "server_settings", "target_session_attrs", "krbsrvname",
            "gsslib",
        )
    )  # fmt: skip
    addresses, _ = connect_utils._parse_connect_dsn_and_args(dsn=dsn, **absent)
    found: list[str | tuple[str, int]] = addresses
    return found


def _is_here(address: str | tuple[str, int]) -> bool:
    return (
        isinstance(address, str) or address[0] in {"localhost", "::1"} or address[0][:4] == "127."
    )


@pytest.mark.parametrize(("dsn", "environ"), HERE)
def test_this_machine_needs_no_tls(
    dsn: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert _private(dsn, environ)
    assert all(_is_here(each) for each in _addresses(dsn))


@pytest.mark.parametrize(("dsn", "environ"), AWAY)
def test_another_machine_does(
    dsn: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert not _private(dsn, environ)
    named = [each[0] for each in _addresses(dsn) if isinstance(each, tuple)]
    assert any(host not in {"localhost", "127.0.0.1", "::1"} for host in named)


@pytest.mark.parametrize(
    "mode", ["disable", "allow", "prefer", "require", "verify-ca", "VERIFY-FULL", ""]
)
def test_no_other_mode_will_do(mode: str) -> None:
    assert not _private(f"postgresql://db.example.org/x?sslmode={mode}", {})
    assert not _private("postgresql://db.example.org/x", {"PGSSLMODE": mode})


def test_the_certificate_and_its_name_are_verified_in_one_mode() -> None:
    dsn = "postgresql://a.example.org,b.example.org/x"

    assert _private(f"{dsn}?sslmode=verify-full", {})
    assert _private(f"{dsn}?sslmode=disable&sslmode=verify-full", {})
    assert _private(dsn, {"PGSSLMODE": "verify-full"})
    assert not _private(f"{dsn}?sslmode=require", {"PGSSLMODE": "verify-full"})
    assert not _private(f"{dsn}?sslmode=verify-full&sslmode=require", {})


def test_a_service_file_may_lead_anywhere() -> None:
    assert not _private("postgresql:///x?service=main", {"PGHOST": "localhost"})
    assert not _private("postgresql://db/x?service=main", {"PGSSLMODE": "verify-full"})
    assert _private("postgresql://localhost/x?service=main", {})
    assert _private("postgresql:///x?service=main&sslmode=verify-full", {})


@pytest.mark.parametrize("command", ["migrate", "retain", "serve"])
def test_a_command_refuses_a_server_that_it_cannot_be_sure_of(command: str) -> None:
    dsn = "postgresql://broker:hunter2@db.invalid/broker?sslmode=require"

    env = {**REQUIRED, "PLEXSPHERE_DSN": dsn, "PGHOST": None, "PGSSLMODE": None}

    result = CliRunner(env=env).invoke(cli, [command])

    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line == (
        "broker: PLEXSPHERE_DSN: must have sslmode=verify-full, because it names a host that is "
        "not this machine (PLEXSPHERE_DSN_TLS=unverified takes any)"
    )


def test_an_explicit_word_takes_any_server() -> None:
    dsn = "postgresql://broker@db.invalid/broker"
    env = {"PLEXSPHERE_DSN": dsn, "PLEXSPHERE_DSN_TLS": "unverified"}

    result = CliRunner(env=env).invoke(cli, ["migrate"])

    assert result.exit_code == 1
    assert "names a server that does not answer" in result.stderr
