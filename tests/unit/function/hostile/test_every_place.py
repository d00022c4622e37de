"""Every place of a valid request holds everything that does not belong there, one by one.

A quick run puts one odd value at each place, each value at as many; a long one all at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from tests.unit.function.hostile import bases, laws, sites
from tests.unit.function.hostile.calls import LONG, call

STRIDE = 1 if LONG else len(sites.ODD) + 1
"""Of all pairs of a place and a value, in order: how many until the next one is tried. One
more than there are values, so that each place has one and the values take turns."""

IDENTITY = {"apiVersion", "kind", "metadata", "name", "xrName", "labels", "record", "hold"}
"""What tells one object from another."""


def identifies(where: str) -> bool:
    """Whether a place is one that objects are known by, or an object as a whole."""
    place = where.split(" ", maxsplit=1)[0].replace("provisioning.plexsphere.com/", "").split("/")
    return len(place) <= 2 or place[-1] in IDENTITY


UNREADABLE = "cannot run step: input"


def spoilt(base: bases.Base, *, step: bool) -> Iterator[tuple[str, fnv1.RunFunctionRequest]]:
    pairs = [
        (site, number)
        for site in sites.sites(base.request)
        if (site.part == "input") == step
        for number in range(len(sites.ODD))
    ]
    for site, number in pairs[::STRIDE]:
        yield f"{site} #{number}", sites.spoil(base.request, site, sites.ODD[number])


@pytest.mark.parametrize("name", bases.NAMES)
def test_an_odd_object_is_fatal_only_as_another_one_and_breaks_no_law(name: str) -> None:
    base = bases.base(name)
    broken: dict[str, str] = {}

    for where, request in spoilt(base, step=False):
        try:
            strange = laws.lawful_or_stranger(base, request, call(request))
            assert not strange or identifies(where), "is taken for another object"
        except AssertionError as error:
            broken[where] = str(error)

    assert not broken


@pytest.mark.parametrize("name", bases.NAMES)
def test_an_odd_input_is_fatal_by_its_field_or_breaks_no_law(name: str) -> None:
    base = bases.base(name)
    broken: dict[str, str] = {}

    for where, request in spoilt(base, step=True):
        answer = call(request)
        said = laws.fatal(answer)
        try:
            if said is None:
                laws.lawful(base, request, answer)
            else:
                laws.keeps_others(base, request, answer)
                laws.tells_no_token(answer, ())
                assert said.startswith(UNREADABLE)
        except AssertionError as error:
            broken[where] = str(error)

    assert not broken


def test_the_bases_are_valid_and_reach_what_they_are_named_for() -> None:
    made: dict[str, set[str]] = {}

    for name, base in bases.all_bases():
        answer = call(base.request)
        laws.lawful(base, base.request, answer)
        made[name] = set(answer.desired.resources)

    assert {"record", "substrate"} <= made["declare-born"] & made["declare-helm"]
    assert {"record-server", "server", "network"} <= made["enrol-accepted"] & made["enrol-draining"]
    assert made["declare-fresh"] == {"record", "theirs"}
    assert "server" not in made["enrol-fresh"]
