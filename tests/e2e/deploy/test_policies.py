"""Each rule of `plexsphere-hold` about deletion, on a real API server: allowed and refused."""

from __future__ import annotations

from typing import Any

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from tests.e2e.deploy.holding import (
    CRDS,
    XRDS,
    await_deleted_xrd,
    await_refusal,
    await_shown_refusal,
    hold_namespace,
    refused,
    release,
    serve_xrds,
    xrd,
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
    LABEL_OFF,
    SECRET,
    SUBSTRATE,
    Kind,
    Place,
    held,
)

pytestmark = pytest.mark.e2e

DELETIONS = [
    pytest.param({}, id="default"),
    pytest.param({"propagationPolicy": "Background"}, id="background"),
    pytest.param({"propagationPolicy": "Foreground"}, id="foreground"),
    pytest.param({"propagationPolicy": "Orphan"}, id="orphan"),
    pytest.param({"gracePeriodSeconds": 0}, id="force"),
]


@pytest.mark.parametrize("options", DELETIONS)
def test_held_object_is_not_deleted(place: Place, options: dict[str, Any]) -> None:
    substrate = place.substrate()

    answer = place.admin.delete(substrate, **options)

    assert refused(answer, "HoldProbe pr-", "ProvisioningRecord web-1-0123456789", "delete the")
    assert place.there(substrate)


@pytest.mark.parametrize("user", [CROSSPLANE, COLLECTOR, NAMESPACE_CONTROLLER, "jane"])
def test_held_object_is_not_deleted_by_other_accounts(place: Place, user: str) -> None:
    substrate = place.substrate()

    answer = place.admin.as_user(user, MASTERS).delete(substrate)

    assert refused(answer)
    assert place.there(substrate)


def test_reconciler_deletes_held_object(place: Place) -> None:
    substrate = place.substrate()

    answer = place.admin.as_user(RECONCILER).delete(substrate)

    assert answer.ok, answer.message
    assert place.gone(substrate)


def test_break_glass_deletes_held_object(place: Place) -> None:
    substrate = place.substrate()

    answer = place.admin.as_user("jane", BREAK_GLASS).delete(substrate)

    assert answer.ok, answer.message
    assert place.gone(substrate)


def test_released_object_is_deleted_by_anybody_in_the_foreground(place: Place) -> None:
    substrate = place.substrate(CONFIG_MAP)
    release(place, substrate)

    answer = place.admin.as_user(CROSSPLANE, MASTERS).delete(
        substrate, propagationPolicy="Foreground"
    )

    assert answer.ok, answer.message
    place.await_gone(substrate)


@pytest.mark.parametrize(
    "options", [options for options in DELETIONS if options.id != "foreground"]
)
def test_released_object_is_not_deleted_otherwise(place: Place, options: dict[str, Any]) -> None:
    substrate = place.substrate()
    release(place, substrate)

    answer = place.admin.delete(substrate, **options)

    assert refused(answer, "propagationPolicy Foreground")
    assert place.there(substrate)


def test_held_object_is_not_deleted_with_its_collection(place: Place) -> None:
    substrate = place.substrate()

    answer = place.admin.delete(place.all(SUBSTRATE))

    assert answer.status == 403
    assert place.there(substrate)


def test_collector_leaves_held_object_of_an_owner_deleted_in_the_background(
    place: Place, control_plane: ControlPlane
) -> None:
    owner = place.make(CONFIG_MAP)
    free = place.make(CONFIG_MAP, ownerReferences=place.owner(owner))
    substrate = place.substrate(CONFIG_MAP, ownerReferences=place.owner(owner))

    assert place.admin.delete(owner, propagationPolicy="Background").ok

    place.await_gone(owner)
    place.await_gone(free)
    await_refusal(control_plane, COLLECTOR, substrate)
    assert place.there(substrate)


def test_owner_deleted_in_the_foreground_waits_for_held_object(
    place: Place, control_plane: ControlPlane
) -> None:
    owner = place.make(CONFIG_MAP)
    substrate = place.substrate(CONFIG_MAP, ownerReferences=place.owner(owner))

    assert place.admin.delete(owner, propagationPolicy="Foreground").ok

    await_refusal(control_plane, COLLECTOR, substrate)
    assert place.there(substrate)
    assert not place.gone(owner)
    assert place.admin.as_user(RECONCILER, MASTERS).delete(substrate).ok
    place.await_gone(owner)


def test_held_namespace_is_not_deleted_and_tells_its_count(place: Place) -> None:
    hold_namespace(place, records="3")

    answer = place.admin.delete(place.path)

    assert refused(answer, f"Namespace {place.name}", "3 ProvisioningRecords", "delete its")
    assert place.there(place.path)


def test_held_namespace_is_deleted_once_the_reconciler_let_go(place: Place) -> None:
    hold_namespace(place, records="0")
    reconciler = place.admin.as_user(RECONCILER)

    assert reconciler.patch(place.path, LABEL_OFF).ok
    assert place.admin.delete(place.path).ok

    place.await_gone(place.path)


def test_deleting_the_namespace_around_a_held_object_waits_and_says_why(place: Place) -> None:
    substrate = place.substrate()

    assert place.admin.delete(place.path).ok

    await_shown_refusal(place, "plexsphere-hold")
    assert place.there(substrate)
    assert place.admin.as_user(RECONCILER).delete(substrate).ok
    place.await_gone(place.path)


@pytest.mark.parametrize("kind", [CONFIG_MAP, SECRET])
def test_core_kinds_are_held_too(place: Place, kind: Kind) -> None:
    credentials = place.make(kind, "cloud-credentials-0", labels=held())

    answer = place.admin.delete(credentials)

    assert refused(answer, f"{kind[1]} cloud-credentials-0", "teardown of nodes needs it")


def test_our_definitions_are_not_deleted(place: Place) -> None:
    for plural in ("provisioningrecords", "blueprintversions", "projects", "clouds"):
        answer = place.admin.delete(f"{CRDS}/{plural}.{names.GROUP}?dryRun=All")

        assert refused(answer, plural, "every object of its kind")


def test_held_xrd_is_not_deleted(place: Place, control_plane: ControlPlane) -> None:
    serve_xrds(control_plane)
    name = f"xprobes.{place.name}.plexsphere.test"
    assert place.admin.create(XRDS, xrd(name)).ok

    answer = place.admin.delete(f"{XRDS}/{name}")

    assert refused(answer, "CompositeResourceDefinition", "every object of its kind")
    await_deleted_xrd(place.admin, name)


def test_system_namespace_is_not_deleted(place: Place) -> None:
    answer = place.admin.delete("/api/v1/namespaces/plexsphere-system?dryRun=All")

    assert refused(answer, "Namespace plexsphere-system", "teardown of nodes needs it")
