"""The installer and the environment file, run by a real shell in a folder of their own."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

from function.render.documents import install

PAYLOAD = b"#!/bin/sh\necho plexd\n"
SUM = hashlib.sha256(PAYLOAD).hexdigest()
URLS = {arch: f"https://downloads.example.org/plexd-{arch}" for arch in ("amd64", "arm64")}
TIMEOUT_S = 20


class Machine:
    """A folder with stand-ins for `uname` and `curl`, and the place plexd goes to."""

    def __init__(self, folder: Path, architecture: str) -> None:
        self.binary = folder / "bin" / "plexd"
        self.asked = folder / "asked"
        self._tools = folder / "tools"
        payload = folder / "payload"
        payload.write_bytes(PAYLOAD)
        self.binary.parent.mkdir()
        self._tools.mkdir()
        self._tool("uname", f"echo {architecture}")
        take = 'while [ "$1" != -o ]; do shift; done'
        self._tool("curl", f'echo "$@" > {self.asked}\n{take}\ncp {payload} "$2"')

    def _tool(self, name: str, text: str) -> None:
        tool = self._tools / name
        tool.write_text(f"#!/bin/sh\n{text}\n")
        tool.chmod(0o755)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        moved = script.replace(install.BINARY, str(self.binary))
        path = f"{self._tools}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", "-c", moved],
            env={"PATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def left(self) -> list[str]:
        return sorted(path.name for path in self.binary.parent.iterdir())


@pytest.mark.parametrize(
    ("machine", "arch"),
    [("x86_64", "amd64"), ("amd64", "amd64"), ("aarch64", "arm64"), ("arm64", "arm64")],
)
def test_a_checked_binary_is_moved_into_place(tmp_path: Path, machine: str, arch: str) -> None:
    host = Machine(tmp_path, machine)

    done = host.run(install.installer(URLS, {"amd64": SUM, "arm64": SUM}))

    assert done.returncode == 0, done.stderr
    assert host.left() == ["plexd"]
    assert host.binary.read_bytes() == PAYLOAD
    assert stat.S_IMODE(host.binary.stat().st_mode) == 0o755
    assert URLS[arch] in host.asked.read_text()


def test_a_binary_with_another_sum_leaves_nothing(tmp_path: Path) -> None:
    host = Machine(tmp_path, "x86_64")

    done = host.run(install.installer(URLS, {"amd64": "0" * 64}))

    assert done.returncode != 0
    assert host.left() == []


def test_an_architecture_without_a_sum_is_refused_before_the_download(tmp_path: Path) -> None:
    host = Machine(tmp_path, "aarch64")

    done = host.run(install.installer(URLS, {"amd64": SUM}))

    assert done.returncode != 0
    assert "no checksum for arm64" in done.stderr
    assert not host.asked.exists()


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    host = Machine(tmp_path, "riscv64")

    done = host.run(install.installer(URLS, {}))

    assert done.returncode != 0
    assert host.left() == []


def test_without_sums_the_binary_is_installed_unchecked(tmp_path: Path) -> None:
    host = Machine(tmp_path, "x86_64")

    done = host.run(install.installer(URLS, {}))

    assert done.returncode == 0, done.stderr
    assert host.left() == ["plexd"]


def test_a_second_run_replaces_the_first(tmp_path: Path) -> None:
    host = Machine(tmp_path, "x86_64")
    script = install.installer(URLS, {"amd64": SUM})

    host.run(script)
    done = host.run(script)

    assert done.returncode == 0
    assert host.left() == ["plexd"]


def test_https_never_falls_back_to_http() -> None:
    plain = {"amd64": "http://10.0.0.1/plexd"}

    assert "--proto '=https'" in install.installer(URLS, {})
    assert "--proto '=http,https'" in install.installer(plain, {"amd64": SUM})


def test_the_environment_file_is_read_alike_by_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "environment"
    path.write_text(install.environment({"PLEXD_API": "https://a.example.org/?x=1&y=2;#z"}))

    done = subprocess.run(
        ["sh", "-c", f"set -a; . {path}; set +a; printenv PLEXD_API"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )

    assert done.stdout == "https://a.example.org/?x=1&y=2;#z\n"
