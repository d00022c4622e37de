"""Equal requests get equal bytes: over many runs, in every process, in any order of a map."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from tests.unit.function.hostile import bases
from tests.unit.function.hostile.calls import LONG, call, wire

RUNS = 1000
SEEDS = ("0", "1", "4242", "random") if LONG else ("0", "4242")
ROOT = Path(__file__).parents[4]
MADE_ONCE = {"declare-born", "declare-helm", "declare-preview", "enrol-accepted"}
"""Bases whose answer holds a fresh document, ten times the work of any other."""

PROGRAM = """
import hashlib, pathlib, sys
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from tests.unit.function.hostile.calls import call, wire
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    request = fnv1.RunFunctionRequest.FromString(path.read_bytes())
    print(path.name, hashlib.sha256(wire(call(request))).hexdigest())
"""


@pytest.mark.parametrize(
    "name", ["declare-ready", "declare-born", "enrol-enrolled", "enrol-accepted"]
)
def test_a_thousand_runs_give_one_answer(name: str) -> None:
    request = bases.base(name).request
    runs = RUNS if LONG or name not in MADE_ONCE else RUNS // 20

    answers = {wire(call(request)) for _ in range(runs)}

    assert len(answers) == 1


def test_every_process_gives_the_same_answer_whatever_its_hash_seed(tmp_path: Path) -> None:
    ours = {}
    for name, base in bases.all_bases():
        (tmp_path / name).write_bytes(wire(base.request))
        ours[name] = hashlib.sha256(wire(call(base.request))).hexdigest()

    for seed in SEEDS:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            check=True,
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            text=True,
            timeout=120,
        )
        theirs = dict(line.split() for line in done.stdout.splitlines())
        assert theirs == ours, seed


@pytest.mark.parametrize("name", bases.NAMES)
def test_the_order_in_which_a_map_was_filled_does_not_matter(name: str) -> None:
    request = bases.base(name).request
    turned = json_format.ParseDict(
        _turned(json_format.MessageToDict(request)), fnv1.RunFunctionRequest()
    )

    assert wire(turned) == wire(request)
    assert wire(call(turned)) == wire(call(request))


@pytest.mark.parametrize("name", bases.NAMES)
def test_answering_changes_nothing_of_the_request(name: str) -> None:
    request = bases.base(name).request
    before = wire(request)

    call(request)

    assert wire(request) == before


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(list(value))}
    return [_turned(item) for item in value] if isinstance(value, list) else value
