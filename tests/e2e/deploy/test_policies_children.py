"""Each rule of `plexsphere-hold-children` and `plexsphere-hold-records`, on a real API server."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from function.contract import names
from reconciler.adapters.kubernetes.objects.composites import CLAIM_NAME, CLAIM_NAMESPACE
from tests.e2e.deploy.holding import (
    await_shown_refusal,
    make_record,
    refused,
    release,
)
from tests.e2e.deploy.identity import (
    BREAK_GLASS,
    COLLECTOR,
    CROSSPLANE,
    MASTERS,
    NAMESPACE_CONTROLLER,
    RECONCILER,
)
from tests.e2e.deploy.place import (
    CONFIG_MAP,
    MACHINE,
    SUBSTRATE,
    Place,
    held,
)

pytestmark = pytest.mark.e2e

PROVIDER = "system:serviceaccount:crossplane-system:provider-nop"
FINALIZERS_OFF: dict[str, Any] = {"metadata": {"finalizers": None}}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"propagationPolicy": "Background"}, id="background"),
        pytest.param({"propagationPolicy": "Foreground"}, id="foreground"),
        pytest.param({"propagationPolicy": "Orphan"}, id="orphan"),
        pytest.param({"gracePeriodSeconds": 0}, id="force"),
    ],
)
def test_child_is_not_deleted(place: Place, options: dict[str, Any]) -> None:
    substrate = place.substrate()
    child = place.machine(substrate)

    answer = place.admin.delete(child, **options)

    assert refused(answer, "MachineProbe", _name(substrate), "delete the ProvisionedResource")
    assert place.there(child)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"labels": {names.CROSSPLANE_COMPOSITE: None}}, id="label"),
        pytest.param({"ownerReferences": None}, id="owner"),
    ],
)
def test_child_is_not_set_free(place: Place, change: dict[str, Any]) -> None:
    child = place.machine()

    answer = place.admin.as_user("jane", MASTERS).patch(child, {"metadata": change})

    assert refused(answer)
    assert place.there(child)


@pytest.mark.parametrize("user", [NAMESPACE_CONTROLLER, PROVIDER, "jane"])
def test_child_is_not_deleted_by_other_accounts(place: Place, user: str) -> None:
    child = place.machine()

    answer = place.admin.as_user(user, MASTERS).delete(child)

    assert refused(answer)
    assert place.there(child)


@pytest.mark.parametrize("user", [COLLECTOR, CROSSPLANE, RECONCILER])
def test_child_is_deleted_by_exempt_accounts(place: Place, user: str) -> None:
    child = place.machine()

    answer = place.admin.as_user(user, MASTERS).delete(child)

    assert answer.ok, answer.message
    assert place.gone(child)


def test_child_is_deleted_by_break_glass(place: Place) -> None:
    child = place.machine()

    answer = place.admin.as_user("jane", MASTERS, BREAK_GLASS).delete(child)

    assert answer.ok, answer.message
    assert place.gone(child)


def test_child_is_not_deleted_with_its_collection(place: Place) -> None:
    child = place.machine()

    answer = place.admin.delete(place.all(MACHINE))

    assert answer.status == 403
    assert place.there(child)


def test_child_outlives_the_deletion_of_its_namespace(place: Place) -> None:
    substrate = place.substrate()
    child = place.machine(substrate)

    assert place.admin.delete(place.path).ok

    await_shown_refusal(place, "plexsphere-hold-children")
    assert place.there(child)
    assert place.admin.as_user(COLLECTOR).delete(child).ok
    assert place.admin.as_user(RECONCILER).delete(substrate).ok
    place.await_gone(place.path)


def test_child_goes_before_its_released_substrate(place: Place) -> None:
    substrate = place.substrate(CONFIG_MAP)
    child = place.machine(substrate, CONFIG_MAP, finalizers=["example.org/provider"])
    release(place, substrate)

    answer = place.admin.as_user(CROSSPLANE, MASTERS).delete(
        substrate, propagationPolicy="Foreground"
    )

    assert answer.ok, answer.message
    assert not place.gone(child)
    assert not place.gone(substrate)
    assert place.admin.as_user(PROVIDER, MASTERS).patch(child, FINALIZERS_OFF).ok
    place.await_gone(child)
    place.await_gone(substrate)


@pytest.mark.parametrize("value", [None, "web-2", "pr-0197b1a2-0000-7000-8000-000000000000"])
@pytest.mark.parametrize("user", ["jane", PROVIDER])
def test_composite_label_is_not_changed(place: Place, user: str, value: str | None) -> None:
    child = place.machine()

    answer = place.admin.as_user(user, MASTERS).patch(
        child, {"metadata": {"labels": {names.CROSSPLANE_COMPOSITE: value}}}
    )

    assert refused(answer, names.CROSSPLANE_COMPOSITE, "Crossplane alone")


@pytest.mark.parametrize("user", [COLLECTOR, CROSSPLANE])
def test_composite_label_is_taken_off_by_exempt_accounts(place: Place, user: str) -> None:
    child = place.machine()

    answer = place.admin.as_user(user, MASTERS).patch(
        child, {"metadata": {"labels": {names.CROSSPLANE_COMPOSITE: None}}}
    )

    assert answer.ok, answer.message


def test_child_is_not_cut_off_from_its_substrate(place: Place) -> None:
    substrate = place.substrate()
    owner = place.owner(substrate)
    child = place.machine(substrate)
    unblocking = [{**owner[0], "blockOwnerDeletion": False}]
    elsewhere = [{**owner[0], "uid": str(uuid4())}]

    for references in (None, unblocking, elsewhere):
        answer = place.admin.patch(child, {"metadata": {"ownerReferences": references}})

        assert refused(answer, "ownerReferences", "garbage collector")


def test_provider_works_on_a_child(place: Place) -> None:
    child = place.machine(finalizers=["example.org/provider"])
    body = {
        "metadata": {"annotations": {"crossplane.io/external-name": "vm-1"}, "finalizers": None},
        "spec": {"size": 1},
    }

    answer = place.admin.as_user(PROVIDER, MASTERS).patch(child, body)

    assert answer.ok, answer.message


@pytest.mark.parametrize("composite", ["web-1", "pr-web-1", "pr-0197b1a2"])
def test_what_is_below_other_composites_is_free(place: Place, composite: str) -> None:
    child = place.machine(place.make(CONFIG_MAP, composite))

    answer = place.admin.delete(child)

    assert answer.ok, answer.message


def test_label_alone_holds_nothing(place: Place) -> None:
    labels = {names.CROSSPLANE_COMPOSITE: f"pr-{uuid4()}"}
    foreign = place.make(CONFIG_MAP, labels=labels)

    answer = place.admin.delete(foreign)

    assert answer.ok, answer.message


def _marked(handle: str) -> dict[str, str]:
    """Return the labels that Crossplane gives all below a composite that the reconciler marked."""
    return {
        names.CROSSPLANE_COMPOSITE: "backend-1",
        CLAIM_NAME: handle,
        CLAIM_NAMESPACE: "shop",
    }


def _nested(place: Place) -> tuple[str, str]:
    """Make an enrolled composite of its step's own name, and a machine two levels below it."""
    marked = _marked(f"pr-{uuid4()}")
    outer = place.make(CONFIG_MAP)
    composite = place.make(
        SUBSTRATE, labels={**marked, **held()}, ownerReferences=place.owner(outer)
    )
    group = place.make(SUBSTRATE, labels=marked, ownerReferences=place.owner(composite))
    return composite, place.make(MACHINE, labels=marked, ownerReferences=place.owner(group))


@pytest.mark.parametrize("user", [NAMESPACE_CONTROLLER, PROVIDER, "jane"])
def test_what_is_deep_below_an_enrolled_composite_is_not_deleted(place: Place, user: str) -> None:
    _, machine = _nested(place)

    answer = place.admin.as_user(user, MASTERS).delete(machine)

    assert refused(answer, "MachineProbe", "backend-1", "out of the mesh")
    assert place.there(machine)


@pytest.mark.parametrize("user", [COLLECTOR, CROSSPLANE, RECONCILER])
def test_what_is_deep_below_goes_with_what_is_above(place: Place, user: str) -> None:
    _, machine = _nested(place)

    answer = place.admin.as_user(user, MASTERS).delete(machine)

    assert answer.ok, answer.message


@pytest.mark.parametrize("label", [CLAIM_NAME, CLAIM_NAMESPACE])
def test_the_mark_of_a_composite_is_not_taken_off(place: Place, label: str) -> None:
    composite, machine = _nested(place)
    off = {"metadata": {"labels": {label: None}}}

    for path in (composite, machine):
        answer = place.admin.as_user("jane", MASTERS).patch(path, off)

        assert refused(answer, CLAIM_NAME, "reconciler alone")


def test_an_orphaned_composite_keeps_its_mark(place: Place) -> None:
    composite = place.make(SUBSTRATE, labels={**_marked(f"pr-{uuid4()}"), **held()})

    answer = place.admin.patch(composite, {"metadata": {"labels": {CLAIM_NAME: None}}})

    assert refused(answer, CLAIM_NAME)


def test_a_released_composite_is_deleted_by_anybody_in_the_foreground(place: Place) -> None:
    composite, _ = _nested(place)
    release(place, composite)

    answer = place.admin.delete(composite, propagationPolicy="Foreground")

    assert answer.ok, answer.message


@pytest.mark.parametrize("handle", ["web", "pr-web", "pr-0197b1a2"])
def test_what_somebody_else_claims_is_free(place: Place, handle: str) -> None:
    owner = place.owner(place.make(CONFIG_MAP))
    claimed = place.make(MACHINE, labels=_marked(handle), ownerReferences=owner)

    answer = place.admin.delete(claimed)

    assert answer.ok, answer.message


def test_a_mark_without_controller_holds_nothing(place: Place) -> None:
    claimed = place.make(MACHINE, labels=_marked(f"pr-{uuid4()}"))

    answer = place.admin.delete(claimed)

    assert answer.ok, answer.message


def test_owner_that_is_no_controller_holds_nothing(place: Place) -> None:
    further = {**place.owner(place.substrate())[0], "controller": False}
    child = place.machine(ownerReferences=[further])

    answer = place.admin.delete(child)

    assert answer.ok, answer.message


@pytest.mark.parametrize("user", ["jane", CROSSPLANE, COLLECTOR, NAMESPACE_CONTROLLER])
@pytest.mark.parametrize("deleted", [False, True], ids=["alive", "terminating"])
def test_teardown_finalizer_is_not_taken_off(place: Place, user: str, deleted: bool) -> None:
    record = make_record(place)
    if deleted:
        assert place.admin.delete(record).ok

    answer = place.admin.as_user(user, MASTERS).patch(record, FINALIZERS_OFF)

    assert refused(answer, names.FINALIZER, "reconciler alone")
    assert not place.gone(record)


def test_teardown_finalizer_is_taken_off_by_reconciler_and_break_glass(place: Place) -> None:
    for caller in (place.admin.as_user(RECONCILER), place.admin.as_user("jane", BREAK_GLASS)):
        record = make_record(place)
        assert place.admin.delete(record).ok

        answer = caller.patch(record, FINALIZERS_OFF)

        assert answer.ok, answer.message
        assert place.gone(record)


def test_other_finalizers_of_a_record_come_and_go(place: Place) -> None:
    record = make_record(place)

    for finalizers in ([names.FINALIZER, "example.org/other"], [names.FINALIZER]):
        answer = place.admin.patch(record, {"metadata": {"finalizers": finalizers}})

        assert answer.ok, answer.message


@pytest.mark.parametrize("options", [{}, {"propagationPolicy": "Foreground"}])
def test_record_is_deleted_by_anybody_and_waits(place: Place, options: dict[str, str]) -> None:
    labels = {names.CROSSPLANE_COMPOSITE: f"pr-{uuid4()}"}
    record = make_record(place, labels=labels)

    answer = place.admin.delete(record, **options)

    assert answer.ok, answer.message
    assert not place.gone(record)
    assert not place.there(record)
