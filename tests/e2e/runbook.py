"""A runbook as the tests follow it: its commands are taken from the page and run as they stand.

Reading a page's entries, and a shell that knows the stack. A command that rots on the page
fails its test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from dev import binaries
from dev.stack import ROOT, Stack
from tests.e2e.world import Node

COMMANDS_TIMEOUT_S: Final = 180.0
"""An entry's commands; the longest waits two minutes for a condition."""

_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a page.

    Attributes:
        environment: The page's own exports, which name a subject.
        text: The entry itself.
    """

    environment: str
    text: str

    def commands(self, part: str) -> str:
        """Return the shell commands of a part, `Diagnose` or `Fix`."""
        _, _, rest = self.text.partition(f"**{part}.**")
        within, _, _ = rest.partition("\n**")
        (block,) = blocks(within)
        return block


def blocks(text: str) -> list[str]:
    """Return the shell commands of a text, block by block."""
    return [str(block) for block in _BLOCK.findall(text)]


def entry(page: str, title: str) -> Entry:
    """Return the entry of a page whose title begins so."""
    text = (ROOT / "docs" / "runbooks" / f"{page}.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [section for section in sections if section.startswith(title)]
    return Entry(environment="\n".join(_BLOCK.findall(head)), text=found)


def follow(stack: Stack, node: Node | None, entry: Entry, part: str, **variables: str) -> str:
    """Run an entry's commands about a node; return what they print."""
    commands = entry.commands(part)
    given = dict(variables)
    if node is not None:
        # The page's placeholders are what a reader fills in.
        subject = {"NAMESPACE": node.namespace, "NAME": node.name}
        filled = re.sub(
            r"^export (NAMESPACE|NAME)=.*$",
            lambda match: f"export {match[1]}={subject[match[1]]}",
            entry.environment,
            flags=re.MULTILINE,
        )
        commands = f"{filled}\n{commands}"
    return run(stack, commands, given)


def run(stack: Stack, commands: str, variables: Mapping[str, str]) -> str:
    """Run commands as an administrator of the stack; return what they print."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        env={
            **os.environ,
            "PATH": f"{_kubectl().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "KUBECONFIG": str(stack.plane.kubeconfig),
            "PLEXSPHERE_DSN": stack.postgres.dsn,
            "OPERATOR_URL": stack.operator_url,
            "USER": "jane",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=COMMANDS_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def why(stack: Stack, node: Node) -> dict[str, Any]:
    """Return what `broker why` answers about a node."""
    told = run(stack, f"broker why {node.name} -n {node.namespace} -o json", {})
    return dict(json.loads(told))


@cache
def _kubectl() -> Path:
    return binaries.ensure(["kubectl"], report=print)["kubectl"]
