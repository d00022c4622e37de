"""An `Enrol` step with a wrong name says which machine it leaves out, until it is corrected."""

from __future__ import annotations

import pytest

from dev.stack import Stack
from tests.e2e import enrol_world
from tests.e2e.enrol_pool import Pool, held
from tests.e2e.enrol_world import ENTRY
from tests.e2e.world import CLOUD_API, Object, condition_of, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

MISNAMED = "pool-misnamed"


def test_a_wrong_name_names_the_machine_that_it_leaves_out_and_the_right_one_enrols_it(
    stack: Stack,
) -> None:
    enrol_world.install(stack, enrol_world.composition(MISNAMED, [{**ENTRY, "name": "node0"}]))
    pool = Pool(stack, "misnamed").apply(1, composition=MISNAMED)

    said = wait_for(lambda: _refusal(pool), "the machine named", explain=pool.explain)

    assert said.startswith("input.resources[0].name: must be a resource")
    assert "'node0' is none (nearest: 'node-0')" in said
    assert condition_of(pool.xr(), "Ready").get("status") == "False"
    machine = _machine(pool)
    assert not held(machine)
    assert "userData" not in machine["spec"]["forProvider"]
    assert not held(pool.network())
    wait_for(
        lambda: any(said in text for text in _warnings(pool)),
        "the Event",
        explain=lambda: str(_warnings(pool)),
    )

    stack.plane.apply(enrol_world.composition(MISNAMED, [{**ENTRY, "name": "node-0"}]))

    (handle,) = pool.until_ready("node-0")
    wait_for(lambda: held(_machine(pool)), "its hold", explain=pool.explain)
    assert _machine(pool)["metadata"]["uid"] == machine["metadata"]["uid"]
    assert condition_of(pool.xr(), "Admitted").get("status") == "True"
    assert condition_of(pool.xr(), "BootstrapInjected").get("reason") == "NotInjected"
    # Told twice at most: before the machine was there, and with it.
    assert len(_warnings(pool)) <= 2
    pool.delete("Background")
    pool.until_gone()
    pool.assert_ended(handle)


def _refusal(pool: Pool) -> str | None:
    """Return why the XR is not admitted, once its machine is there."""
    found = condition_of(pool.xr(), "Admitted")
    said = str(found.get("message", ""))
    refused = (found.get("status"), found.get("reason")) == ("False", "ResourceNotFound")
    return said if refused and "'node-0' exists and is not enrolled" in said else None


def _machine(pool: Pool) -> Object:
    found = pool.composed("node-0", "Machine", CLOUD_API)
    assert found is not None
    return found


def _warnings(pool: Pool) -> set[str]:
    """Return what the XR's Warnings of a name without a resource say."""
    found = pool.cluster.list("v1", "Event", pool.namespace)
    return {str(event["message"]) for event in found if _is_warning(pool, event)}


def _is_warning(pool: Pool, event: Object) -> bool:
    about = event["involvedObject"]
    told = (event["type"], event["reason"], about["kind"], about["name"])
    return told == ("Warning", "ResourceNotFound", "Pool", pool.name)
