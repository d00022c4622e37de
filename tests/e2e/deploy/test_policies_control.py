"""The negative control: what happens on the same API server without the policies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dev.controlplane import ControlPlane
from tests.e2e import dropping
from tests.e2e.deploy import holding
from tests.e2e.deploy.holding import (
    make_record,
)
from tests.e2e.deploy.identity import Caller
from tests.e2e.deploy.place import (
    CONFIG_MAP,
    Place,
)

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Give a control plane of its own, because policies hold for a whole cluster."""
    with ControlPlane(tmp_path_factory.mktemp("bare")) as plane:
        holding.apply_kinds(plane)
        yield plane


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_without_policies_the_substrate_goes_at_once(bare: ControlPlane, propagation: str) -> None:
    place = Place(Caller(bare.kubeconfig))
    owner = place.make(CONFIG_MAP)
    directly = place.substrate(CONFIG_MAP)
    collected = place.substrate(CONFIG_MAP, ownerReferences=place.owner(owner))

    assert place.admin.delete(directly, propagationPolicy=propagation).ok
    assert place.admin.delete(owner, propagationPolicy=propagation).ok

    place.await_gone(directly)
    place.await_gone(collected)


def test_without_policies_a_record_loses_its_finalizer(bare: ControlPlane) -> None:
    place = Place(Caller(bare.kubeconfig))
    record = make_record(place)

    assert place.admin.patch(record, {"metadata": {"finalizers": None}}).ok
    assert place.admin.delete(record).ok

    assert place.gone(record)


def test_without_policies_what_somebody_tries_on_a_machine_is_seen_to_get_through(
    bare: ControlPlane,
) -> None:
    place = Place(Caller(bare.kubeconfig))
    substrate = place.substrate()
    child = place.machine(substrate)

    for path in (substrate, child):
        for _, change in dropping.CHANGES[:2]:
            tried = dropping.attempt(place.admin, path, change)
            again = dropping.attempt(place.admin, path, change)
            assert tried is not None
            assert again is not None
            assert (tried.held, tried.changed) == (True, True)
            assert (again.held, again.changed) == (True, False)
        deleted = dropping.attempt(place.admin, path, None)
        assert deleted is not None
        assert (deleted.held, deleted.changed) == (True, True)


def test_without_policies_a_namespace_takes_everything(bare: ControlPlane) -> None:
    place = Place(Caller(bare.kubeconfig))
    substrate = place.substrate()
    child = place.machine()
    holding.hold_namespace(place, records="1")

    assert place.admin.delete(place.path).ok

    place.await_gone(substrate)
    place.await_gone(child)
    place.await_gone(place.path)


def test_with_hold_alone_a_namespace_still_takes_what_is_below(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ControlPlane(tmp_path_factory.mktemp("hold-alone")) as plane:
        holding.apply_kinds(plane)
        holding.apply_policies(plane, "hold")
        place = Place(Caller(plane.kubeconfig))
        substrate = place.substrate()
        child = place.machine(substrate)

        assert place.admin.delete(place.path).ok

        place.await_gone(child)
        assert place.there(substrate)
