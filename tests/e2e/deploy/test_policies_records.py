"""Who writes records, whatever rights somebody has in a namespace, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.deploy.holding import make_record, refused
from tests.e2e.deploy.identity import CROSSPLANE, MASTERS, RECONCILER, Caller
from tests.e2e.deploy.place import RECORD, Object, Place
from tests.e2e.deploy.rights import bind

pytestmark = pytest.mark.e2e

ANOTHER: Object = {
    "spec": {"substrate": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "of-somebody-else"}]}
}
"""What is held, and deleted with the node, on a record's word."""

ADOPTS: Object = {"status": {"xrName": "pr-0192f0c1-2d3e-7a4b-8c5d-6e7f80910111"}}
"""What a declared machine is called."""


@pytest.fixture
def owner(place: Place) -> Caller:
    """Somebody who may do everything in the namespace, and nothing outside."""
    return place.admin.as_user(bind(place, "cluster-admin"), "system:authenticated")


def _born(place: Place) -> dict[str, Any]:
    body = place.admin.get(make_record(place)).body
    spec = {**body["spec"], **ANOTHER["spec"]}
    return {**body, "metadata": {"name": "web-born"}, "spec": spec, "status": {}}


def test_no_record_is_made_by_the_owner_of_a_namespace(place: Place, owner: Caller) -> None:
    answer = owner.create(place.all(RECORD), _born(place))

    assert refused(answer, "cannot create ProvisioningRecord web-born", "ProvisionedResource")


def test_a_record_is_made_by_crossplane_and_who_may_update_projects(place: Place) -> None:
    for user in (CROSSPLANE, "jane"):
        body = {**_born(place), "metadata": {"name": f"web-of-{user.rpartition(':')[2]}"}}
        answer = place.admin.as_user(user, MASTERS).create(place.all(RECORD), body)
        assert answer.ok, answer.message


@pytest.mark.parametrize(
    ("change", "subresource", "field"), [(ANOTHER, "", "spec"), (ADOPTS, "/status", "status")]
)
def test_no_record_is_changed_by_the_owner_of_a_namespace(
    place: Place, owner: Caller, change: Object, subresource: str, field: str
) -> None:
    path = make_record(place)

    answer = owner.patch(f"{path}{subresource}", change)

    assert refused(answer, "cannot update ProvisioningRecord", f"{field}: is written by")


def test_a_record_is_deleted_labelled_and_paused_by_the_owner_of_a_namespace(
    place: Place, owner: Caller
) -> None:
    path = make_record(place)
    pause = {"annotations": {"crossplane.io/paused": "true"}, "labels": {"team": "blue"}}

    assert owner.patch(path, {"metadata": pause}).ok
    assert owner.delete(path).ok


def test_a_record_is_written_by_crossplane_and_its_status_by_the_reconciler(place: Place) -> None:
    path = make_record(place)

    written = place.admin.as_user(CROSSPLANE, MASTERS).patch(path, ANOTHER)
    told = place.admin.as_user(RECONCILER, MASTERS).patch(f"{path}/status", ADOPTS)

    assert written.ok, written.message
    assert told.ok, told.message
