"""Service units are read as systemd reads them, as far as documents use them."""

from __future__ import annotations

import pytest

from dev.cloud.guest import units
from dev.cloud.guest.units import EnvironmentFile, Restart, UnitError

UNIT = """
[Unit]
Description=plexd
[Service]
# ExecStart=/ignored
ExecStart=/usr/local/bin/plexd up \\
  --config /etc/plexd/config.yaml
EnvironmentFile=-/etc/plexd/environment
EnvironmentFile=/etc/plexd/more
Environment=A=1 "B=two words"
Restart=always
RestartSec=5
ProtectSystem=strict
[Install]
WantedBy=multi-user.target
"""


def service(**directives: str) -> units.Service:
    lines = [f"{name}={value}" for name, value in {"ExecStart": "/bin/x", **directives}.items()]
    return units.parse_service("[Service]\n" + "\n".join(lines))


def test_a_unit_is_read_with_everything_that_plexds_has() -> None:
    parsed = units.parse_service(UNIT)

    assert parsed == units.Service(
        exec_start=("/usr/local/bin/plexd", "up", "--config", "/etc/plexd/config.yaml"),
        environment={"A": "1", "B": "two words"},
        environment_files=(
            EnvironmentFile(path="/etc/plexd/environment", optional=True),
            EnvironmentFile(path="/etc/plexd/more", optional=False),
        ),
        working_directory="/",
        restart=Restart.ALWAYS,
        restart_delay_s=5.0,
        oneshot=False,
        wanted_by=("multi-user.target",),
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5.0), ("5s", 5.0), ("100ms", 0.1), ("1min 30s", 90.0), ("0", 0.0), ("1.5", 1.5)],
)
def test_restart_delays_are_time_spans(text: str, seconds: float) -> None:
    assert service(RestartSec=text).restart_delay_s == pytest.approx(seconds)


def test_an_empty_assignment_resets_a_directive() -> None:
    parsed = units.parse_service("[Service]\nExecStart=/bin/a\nExecStart=\nExecStart=/bin/b\n")

    assert parsed.exec_start == ("/bin/b",)


def test_prefixes_of_the_program_are_taken_off() -> None:
    assert service(ExecStart="-@/bin/a b").exec_start == ("/bin/a", "b")


@pytest.mark.parametrize(
    "text",
    [
        "[Service]\n",
        "[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n",
        "[Service]\nExecStart=/bin/a 'open\n",
        "[Service]\nExecStart=/bin/a\nType=forking\n",
        "[Service]\nExecStart=/bin/a\nRestart=sometimes\n",
        "[Service]\nExecStart=/bin/a\nRestartSec=5 parsecs\n",
    ],
)
def test_a_unit_that_cannot_be_run_is_refused_by_directive(text: str) -> None:
    with pytest.raises(UnitError, match=r"^cannot read unit: "):
        units.parse_service(text)


def test_environment_files_hold_assignments_quotes_and_comments() -> None:
    text = "# c\n; c\nA=1\n B = two \nC='q q'\nD=\"x\"\nE=a=b\nno assignment\n1F=x\nG='\n"

    assert units.parse_environment_file(text) == {
        "A": "1",
        "B": "two",
        "C": "q q",
        "D": "x",
        "E": "a=b",
        "G": "'",
    }


def test_variables_are_filled_into_arguments() -> None:
    words = units.substitute(
        ["/bin/x", "$MANY", "${MANY}", "--a=$ONE", "$UNSET", "${UNSET}", "100%%"],
        {"MANY": "a b", "ONE": "1"},
    )

    assert words == ["/bin/x", "a", "b", "a b", "--a=1", "", "100%"]
