"""Two enrolled resources that list one object: the second is refused, by its holder's name."""

from __future__ import annotations

import asyncio
import copy
from typing import Any, Final

import pytest

from function.contract import names
from tests.contract.cluster_worlds import RECORD
from tests.faults.cases import begun
from tests.faults.ground import Ground
from tests.faults.stagehand import Life
from tests.unit.reconciler import samples

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SHARED: Final = "net-of-both"
ROWS: Final = "SELECT owner_name FROM plexsphere.provisioned_resources WHERE project_id = $1"


async def enrolled(life: Life, name: str) -> dict[str, Any]:
    """Make a composite and the record of a resource of its own, which lists what both need."""
    group, kind, _ = life.xr
    version = f"{group}/v1alpha1"
    metadata = {"name": name, "namespace": life.namespace}
    xr = {"apiVersion": version, "kind": kind, "metadata": metadata}
    created = await asyncio.to_thread(
        life.ground.admin.create, life.path(life.xr).rpartition("/")[0], xr
    )
    owner = {**{key: xr[key] for key in ("apiVersion", "kind")}, "name": name}
    owner["uid"] = created.body["metadata"]["uid"]
    declaration = samples.ENROLLED.model_dump(mode="json", by_alias=True, exclude_none=True)
    listed = {"apiVersion": f"{life.vm[0]}/v1alpha1", "kind": life.vm[1]}
    record = {
        "apiVersion": names.API_VERSION,
        "kind": names.RECORD_KIND,
        "metadata": {
            **metadata,
            "labels": {names.LABEL_XR: name},
            "ownerReferences": [{**owner, "controller": True}],
            "finalizers": [names.FINALIZER],
        },
        "spec": {
            "declaration": {**declaration, "xr": owner},
            "substrate": [{**listed, "name": ""}, {**listed, "name": SHARED}],
            "observed": {"exists": False, "ready": False},
        },
    }
    answer = await asyncio.to_thread(
        life.ground.admin.create, life.path(RECORD).rpartition("/")[0], record
    )
    assert answer.ok, answer.message
    return await ticked(life, name)


async def ticked(life: Life, name: str) -> dict[str, Any]:
    """Do one tick of a record; return its conditions by type."""
    raw = await life.find(life.path(RECORD, name))
    assert raw is not None
    await life.process.tick.run(copy.deepcopy(raw))
    shown = await life.find(life.path(RECORD, name))
    assert shown is not None
    return {item["type"]: item for item in shown["status"]["conditions"]}


async def test_the_second_is_refused_by_the_holders_name_and_nothing_of_it_is_stored(
    ground: Ground,
) -> None:
    async with begun(ground) as life:
        first = await enrolled(life, "first")

        second = await enrolled(life, "second")

        assert first["Admitted"]["status"] == "True"
        told = second["Admitted"]
        assert (told["status"], told["reason"]) == ("False", "ProtectedElsewhere")
        holder = f"{life.vm[1]} {SHARED!r} is protected for {life.xr[1]} 'first', resource 'server'"
        assert holder in told["message"]
        assert "spec.substrate[1]" in told["message"]
        rows = await ground.pool.fetch(ROWS, life.project)
        assert [row["owner_name"] for row in rows] == ["first"]
        assert second["Ready"]["reason"] == "ProtectedElsewhere"
