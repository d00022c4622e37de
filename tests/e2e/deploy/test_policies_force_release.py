"""The rule of `plexsphere-hold-records` about giving a node up, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from tests.e2e.deploy.holding import make_record, refused
from tests.e2e.deploy.identity import BREAK_GLASS, COLLECTOR, CROSSPLANE, MASTERS, RECONCILER
from tests.e2e.deploy.place import RECORD, Place

pytestmark = pytest.mark.e2e

FORCE: dict[str, Any] = {"metadata": {"annotations": {names.ANNOTATION_FORCE_RELEASE: "OPS-17"}}}
FORCE_OFF: dict[str, Any] = {"metadata": {"annotations": {names.ANNOTATION_FORCE_RELEASE: None}}}
FORCE_BLANK: dict[str, Any] = {"metadata": {"annotations": {names.ANNOTATION_FORCE_RELEASE: ""}}}


@pytest.mark.parametrize("user", ["jane", CROSSPLANE, COLLECTOR])
@pytest.mark.parametrize("change", [FORCE, FORCE_BLANK], ids=["reason", "blank"])
@pytest.mark.parametrize("terminating", [False, True])
def test_force_release_is_not_set_by_others(
    place: Place, user: str, change: dict[str, Any], terminating: bool
) -> None:
    record = make_record(place)
    if terminating:
        assert place.admin.delete(record).ok

    answer = place.admin.as_user(user, MASTERS).patch(record, change)

    assert refused(answer, "cannot update", names.ANNOTATION_FORCE_RELEASE, BREAK_GLASS)


@pytest.mark.parametrize("change", [FORCE_OFF, FORCE_BLANK], ids=["off", "blank"])
def test_force_release_is_not_changed_by_others(place: Place, change: dict[str, Any]) -> None:
    record = make_record(place)
    assert place.admin.as_user("jane", BREAK_GLASS).patch(record, FORCE).ok

    answer = place.admin.patch(record, change)

    assert refused(answer, names.ANNOTATION_FORCE_RELEASE, "leaves a node in the mesh")


def test_force_release_is_set_and_taken_back_by_break_glass(place: Place) -> None:
    record = make_record(place)

    for change in (FORCE, FORCE_BLANK, FORCE_OFF):
        answer = place.admin.as_user("jane", BREAK_GLASS).patch(record, change)
        assert answer.ok, answer.message


def test_the_reconciler_gives_no_node_up_by_itself(place: Place) -> None:
    answer = place.admin.as_user(RECONCILER).patch(make_record(place), FORCE)

    assert answer.status == 403


def test_a_record_is_not_born_force_released(place: Place) -> None:
    body = place.admin.get(make_record(place)).body
    fresh = {"name": "web-born", "annotations": FORCE["metadata"]["annotations"]}

    answer = place.admin.create(place.all(RECORD), {**body, "metadata": fresh})

    assert refused(answer, "cannot create ProvisioningRecord web-born", BREAK_GLASS)


def test_other_annotations_of_a_force_released_record_come_and_go(place: Place) -> None:
    record = make_record(place)
    assert place.admin.as_user("jane", BREAK_GLASS).patch(record, FORCE).ok

    for value in ("true", None):
        answer = place.admin.patch(record, {"metadata": {"annotations": {names.PAUSED: value}}})
        assert answer.ok, answer.message
