"""What the pages print can be typed: commands that exist, manifests that the CRDs accept."""

from __future__ import annotations

import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import jsonschema
import pytest
import yaml

from reconciler.main import cli
from tests.unit.docs.pages import ROOT

PAGES: Final = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")],
)
SHELLS: Final = frozenset({"sh", "bash", "console"})
LANGUAGES: Final = SHELLS | {"json", "mermaid", "promql", "sql", "text", "yaml"}
SCHEMA: Final = (ROOT / "reconciler/adapters/postgres/schema.sql").read_text(encoding="utf-8")

_BLOCK: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_TABLE: Final = re.compile(r"\bplexsphere\.(\w+)")
_COMMAND: Final = re.compile(r"(?:^|[|;&(]|\$ )\s*(broker [^|;&)#<>]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it begins, its language, its text."""

    place: str
    language: str
    text: str


def blocks(languages: frozenset[str] | set[str] | None = None) -> list[Any]:
    """Return the blocks of some languages, or all, as pytest's parameters."""
    found = (block for page in PAGES for block in _of(page))
    wanted = [each for each in found if languages is None or each.language in languages]
    return [pytest.param(each, id=each.place) for each in wanted]


def _of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        body = textwrap.dedent(match[3])
        yield Block(f"{page.relative_to(ROOT)}:{line}", match[2], body)


def _schemas() -> dict[tuple[str, str, str], dict[str, Any]]:
    found = {}
    for file in [*ROOT.glob("deploy/crds/*.yaml"), *ROOT.glob("xrds/**/*.yaml")]:
        for raw in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            for version in raw["spec"]["versions"]:
                key = (raw["spec"]["group"], version["name"], raw["spec"]["names"]["kind"])
                found[key] = version["schema"]["openAPIV3Schema"]
    return found


SCHEMAS: Final = _schemas()


@pytest.mark.parametrize("block", blocks())
def test_a_block_says_its_language(block: Block) -> None:
    assert block.language in LANGUAGES, f"name one of {sorted(LANGUAGES)} after the fence"


@pytest.mark.parametrize("block", blocks({"sh", "bash"}))
def test_a_script_is_one_that_bash_reads(block: Block) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=block.text, text=True, capture_output=True, check=False, timeout=10
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("block", blocks(SHELLS))
def test_its_broker_commands_take_what_they_are_given(block: Block) -> None:
    for line in _COMMAND.findall(block.text.replace("\\\n", " ")):
        _assert_taken(shlex.split(line)[1:], line)


@pytest.mark.parametrize("block", blocks({"yaml"}))
def test_a_manifest_of_ours_is_one_that_its_schema_accepts(block: Block) -> None:
    for raw in yaml.safe_load_all(block.text):
        group, _, version = str(
            raw.get("apiVersion", "") if isinstance(raw, dict) else ""
        ).partition("/")
        if group.endswith("plexsphere.com"):
            jsonschema.validate(raw, SCHEMAS[group, version, raw["kind"]])


@pytest.mark.parametrize("block", blocks({"sql"}))
def test_a_statement_names_tables_of_the_schema(block: Block) -> None:
    tables = _TABLE.findall(block.text)

    assert tables
    assert [each for each in tables if f"TABLE plexsphere.{each} (" not in SCHEMA] == []


def _assert_taken(words: Sequence[str], line: str) -> None:
    command: click.Command = cli
    words = list(words)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, line
        command = command.commands[words.pop(0)]
    options = {name for each in command.params for name in each.opts} | {"--help", "--version"}
    given = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert given <= options, line
