"""An enrolled resource that is itself a composite: what is below it is held with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dev.stack import Stack
from function.contract import names
from reconciler.adapters.kubernetes.objects.composites import CLAIM_NAME
from tests.e2e import enrol_world
from tests.e2e.deploy.holding import refused
from tests.e2e.deploy.identity import Caller
from tests.e2e.enrol_pool import Pool
from tests.e2e.world import CLOUD_API, SUBSTRATE_API, Object, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

XRD_API = "apiextensions.crossplane.io/v2"
NESTED = "pool-nested"
NAMED = "db-of-nested"
"""As its step names it; the blueprint's Composition names the machine alike."""

_COMPOSE = """
class Nested(BaseComposite):
    def compose(self):
        database = self.resources.database('blueprints.plexsphere.com/v1alpha1', 'XGenericVM')
        database.metadata.name = f'db-of-{self.metadata.name}'
        database.spec.parameters.region = 'nbg1'
        database.spec.parameters.instanceType = 'standard-2'
        database.spec.parameters.diskSizeGb = 40
"""
_ENTRY: Object = {
    "name": "database",
    "injectionStrategy": "cloud-init-user-data",
    "provider": "generic",
}


@pytest.fixture(scope="module")
def nested(stack: Stack) -> Stack:
    """Install the team's kind with a Composition whose one resource is a composite."""
    cluster, definition = stack.plane.cluster, enrol_world.definition()
    stack.plane.apply(*enrol_world.rights(), definition)
    name = definition["metadata"]["name"]

    def established() -> bool:
        found = cluster.get(XRD_API, "CompositeResourceDefinition", name)
        return condition_of(found, "Established").get("status") == "True"

    wait_for(established, "the XRD established")
    composition = enrol_world.composition(NESTED, [_ENTRY])
    composition["spec"]["pipeline"][0]["input"]["composite"] = _COMPOSE
    stack.plane.apply(composition)
    return stack


@pytest.fixture(scope="module")
def pool(nested: Stack) -> Iterator[Pool]:
    """Make a pool and wait for its node."""
    pool = Pool(nested, "nested").apply(1, composition=NESTED)
    pool.until_ready("database")
    yield pool
    pool.delete("Background")
    pool.until_gone()


def _labels(pool: Pool, api: str, kind: str) -> Object:
    found = pool.cluster.get(api, kind, NAMED, pool.namespace)
    return ((found or {}).get("metadata") or {}).get("labels") or {}


def test_what_is_below_it_bears_its_mark_and_its_own_name(pool: Pool) -> None:
    handle = pool.handle("database")

    wait_for(
        lambda: _labels(pool, CLOUD_API, "Machine").get(CLAIM_NAME) == handle,
        "the mark on the machine",
    )

    assert _labels(pool, SUBSTRATE_API, "XGenericVM")[CLAIM_NAME] == handle
    assert _labels(pool, CLOUD_API, "Machine").get(names.LABEL_HOLD) is None


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
@pytest.mark.parametrize("plural", ["xgenericvms", "machines"])
def test_neither_it_nor_what_is_below_it_is_deleted(
    pool: Pool, plural: str, propagation: str
) -> None:
    answer = _admin(pool).delete(_path(pool, plural), propagationPolicy=propagation)

    assert refused(answer, "cannot delete", "out of the mesh")
    found = _admin(pool).get(_path(pool, plural)).body
    assert "deletionTimestamp" not in found["metadata"]


@pytest.mark.parametrize("plural", ["xgenericvms", "machines"])
def test_its_mark_stays(pool: Pool, plural: str) -> None:
    off = {"metadata": {"labels": {CLAIM_NAME: None}}}

    answer = _admin(pool).patch(_path(pool, plural), off)

    assert refused(answer, CLAIM_NAME, "reconciler alone")


def test_its_node_leaves_before_what_is_below_it(nested: Stack) -> None:
    pool = Pool(nested, "nested-leaving").apply(1, composition=NESTED)
    (handle,) = pool.until_ready("database")

    pool.delete("Background")
    pool.until_gone()

    out = pool.moment("mesh", "deregistered", handle)
    assert out < pool.moment("cloud", "delete-requested", "db-of-nested-leaving")
    assert pool.cluster.get(CLOUD_API, "Machine", "db-of-nested-leaving", pool.namespace) is None


def _admin(pool: Pool) -> Caller:
    return Caller(pool.stack.plane.kubeconfig)


def _path(pool: Pool, plural: str) -> str:
    api = CLOUD_API if plural == "machines" else SUBSTRATE_API
    return f"/apis/{api}/namespaces/{pool.namespace}/{plural}/{NAMED}"
