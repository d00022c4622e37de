"""XRD, Composition and input schema, judged by Crossplane's own validator."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.render.conftest import COMPOSITION, INPUTS, XRDS, Crossplane, loaded
from tests.unit.function import given

pytestmark = pytest.mark.render


def test_a_good_resource_is_valid(command: Crossplane) -> None:
    status, told = command.validate([given.xr(retry=1)], XRDS)

    assert status == 0, told


@pytest.mark.parametrize(
    "spec",
    [
        {"blueprintRef": {}},
        {"cloudCredentialRef": {"name": "Upper"}},
        {"labels": {"a": 1}},
        {"labels": {"a": "x" * 257}},
        {"retry": -1},
        {"parameters": "none"},
        {"surprise": True},
    ],
)
def test_a_wrong_resource_is_refused(command: Crossplane, spec: dict[str, Any]) -> None:
    status, told = command.validate([given.xr(**spec)], XRDS)

    assert status == 1, told


def test_the_xrd_is_a_valid_one_and_the_composition_too(
    command: Crossplane, core_crds: Path
) -> None:
    objects = [loaded(path) for path in sorted(XRDS.glob("*.yaml"))]

    status, told = command.validate([*objects, loaded(COMPOSITION)], core_crds, XRDS, INPUTS)

    assert status == 0, told


def test_a_wrong_step_input_is_refused(command: Crossplane, core_crds: Path) -> None:
    wrong = copy.deepcopy(loaded(COMPOSITION))
    wrong["spec"]["pipeline"][0]["input"]["enrolment"] = {"baseURL": 7}

    status, told = command.validate([wrong], core_crds, XRDS, INPUTS)

    assert status == 1, told
