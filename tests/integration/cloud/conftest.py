"""Machines that end with their test, and a visible skip where none may be made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dev.cloud import boot
from dev.cloud.boot import Hypervisor, PowerOn


class Start(Protocol):
    """Powers a machine on and answers its folder."""

    def __call__(self, document: str | None, *, name: str = "web-1") -> Path: ...


def on_host(*paths: str) -> list[str]:
    """Those of ``paths`` that exist outside every private root."""
    return [path for path in paths if os.path.lexists(path)]


@pytest.fixture(scope="session")
def private_roots() -> None:
    """Skips where the kernel or a container forbids private roots."""
    allowed = boot.preflight()
    if not allowed.allowed:
        pytest.skip(f"private roots are not allowed here: {allowed.detail}")


@pytest.fixture
def hypervisor() -> Hypervisor:
    return Hypervisor()


@pytest.fixture
def start(private_roots: None, hypervisor: Hypervisor, tmp_path: Path) -> Iterator[Start]:
    started: list[Path] = []

    def power_on(document: str | None, *, name: str = "web-1") -> Path:
        folder = tmp_path / "machines" / name
        started.append(folder)
        hypervisor.power_on(
            PowerOn(
                folder=folder,
                machine_id=f"i-{name}",
                name=name,
                user_data=document,
                lifetime_pid=os.getpid(),
            )
        )
        return folder

    yield power_on
    for folder in started:
        hypervisor.power_off(folder)
