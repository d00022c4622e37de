"""Each rule of `plexsphere-hold` about updates and creation, on a real API server."""

from __future__ import annotations

import pytest

from function.contract import names
from tests.e2e.deploy.holding import (
    hold_namespace,
    refused,
    release,
)
from tests.e2e.deploy.identity import BREAK_GLASS, CROSSPLANE, MASTERS, RECONCILER
from tests.e2e.deploy.place import (
    LABEL_OFF,
    RELEASED,
    SUBSTRATE,
    Place,
    held,
    manifest,
)

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("value", [None, "false"])
def test_hold_label_is_not_taken_off(place: Place, value: str | None) -> None:
    substrate = place.substrate()

    answer = place.admin.patch(substrate, {"metadata": {"labels": {names.LABEL_HOLD: value}}})

    assert refused(answer, names.LABEL_HOLD, "reconciler alone")


def test_hold_label_is_not_lost_by_replacing_the_object(place: Place) -> None:
    substrate = place.substrate()
    body = place.admin.get(substrate).body
    body["metadata"]["labels"] = {}

    answer = place.admin.request("PUT", substrate, body)

    assert refused(answer, names.LABEL_HOLD)


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_hold_label_of_a_namespace_is_not_taken_off(place: Place, subresource: str) -> None:
    hold_namespace(place, records="1")

    answer = place.admin.patch(f"{place.path}{subresource}", LABEL_OFF)

    assert refused(answer, names.LABEL_HOLD)


def test_hold_label_is_not_taken_off_by_crossplane(place: Place) -> None:
    substrate = place.substrate()

    answer = place.admin.as_user(CROSSPLANE, MASTERS).patch(substrate, LABEL_OFF)

    assert refused(answer, names.LABEL_HOLD)


def test_hold_label_is_taken_off_by_reconciler_and_break_glass(place: Place) -> None:
    for caller in (place.admin.as_user(RECONCILER), place.admin.as_user("jane", BREAK_GLASS)):
        substrate = place.substrate()

        answer = caller.patch(substrate, LABEL_OFF)

        assert answer.ok, answer.message


def test_held_object_is_otherwise_changed_by_anybody(place: Place) -> None:
    substrate = place.substrate(finalizers=["example.org/provider"])
    labels = {names.CROSSPLANE_COMPOSITE: None, "team": "checkout"}

    answer = place.admin.as_user(CROSSPLANE, MASTERS).patch(
        substrate, {"metadata": {"labels": labels, "finalizers": None}, "spec": {"size": 1}}
    )

    assert answer.ok, answer.message


@pytest.mark.parametrize("value", ["true", "false"])
def test_released_is_not_set_by_others(place: Place, value: str) -> None:
    substrate = place.substrate()
    body = {"metadata": {"annotations": {names.ANNOTATION_RELEASED: value}}}

    answer = place.admin.as_user(CROSSPLANE, MASTERS).patch(substrate, body)

    assert refused(answer, names.ANNOTATION_RELEASED, "reconciler alone")


@pytest.mark.parametrize("value", [None, "false"])
def test_released_is_not_changed_by_others(place: Place, value: str | None) -> None:
    substrate = place.substrate()
    release(place, substrate)

    answer = place.admin.patch(
        substrate, {"metadata": {"annotations": {names.ANNOTATION_RELEASED: value}}}
    )

    assert refused(answer, names.ANNOTATION_RELEASED)


def test_break_glass_sets_released(place: Place) -> None:
    substrate = place.substrate()

    answer = place.admin.as_user("jane", BREAK_GLASS).patch(
        substrate, {"metadata": {"annotations": RELEASED}}
    )

    assert answer.ok, answer.message


def test_object_is_not_created_held_and_released(place: Place) -> None:
    body = manifest(SUBSTRATE, "born-released", labels=held(), annotations=RELEASED)

    answer = place.admin.create(place.all(SUBSTRATE), body)

    assert refused(answer, "cannot create", names.ANNOTATION_RELEASED)


def test_object_is_created_held_or_released_alone(place: Place) -> None:
    assert place.make(SUBSTRATE, labels=held())
    assert place.make(SUBSTRATE, annotations=RELEASED)


@pytest.mark.parametrize("user", ["jane", CROSSPLANE])
def test_released_object_is_not_made_held(place: Place, user: str) -> None:
    free = place.make(SUBSTRATE, annotations=RELEASED)

    answer = place.admin.as_user(user, MASTERS).patch(free, {"metadata": {"labels": held()}})

    assert refused(answer, names.ANNOTATION_RELEASED)
