"""What the gateway writes to a real API server, beyond what the port promises."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import KubernetesError
from tests.contract.cluster_worlds import RECORD, VM, RealWorld, reference, token
from tests.e2e.deploy.identity import wait_until

pytestmark = pytest.mark.integration


async def test_a_token_secret_is_immutable_typed_and_owned(real: RealWorld) -> None:
    record = real.new_record()

    await real.cluster.token_secrets.create_token_secret(record, name="web-g1", token=token())

    secret = real.admin.get(f"{real.path}/secrets/web-g1").body
    assert secret["type"] == names.TOKEN_SECRET_TYPE
    assert secret["immutable"] is True
    assert set(secret["data"]) == {"token", "generation"}
    assert secret["metadata"]["labels"] == {names.LABEL_RECORD: record["metadata"]["name"]}
    assert secret["metadata"]["ownerReferences"] == [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.RECORD_KIND,
            "name": record["metadata"]["name"],
            "uid": record["metadata"]["uid"],
        }
    ]
    answer = real.admin.patch(f"{real.path}/secrets/web-g1", {"data": {"token": "eA=="}})
    assert answer.status == 422


async def test_a_hold_leaves_other_labels_alone(real: RealWorld) -> None:
    theirs = {"metadata": {"labels": {"team": "checkout"}, "annotations": {"note": "theirs"}}}
    assert real.admin.patch(real.path, theirs).ok

    await real.cluster.namespaces.hold_namespace(real.namespace, records=2)
    await real.cluster.namespaces.hold_namespace(real.namespace, records=0)

    metadata = real.admin.get(real.path).body["metadata"]
    assert metadata["labels"]["team"] == "checkout"
    assert metadata["annotations"] == {"note": "theirs"}


async def test_a_substrate_is_deleted_in_the_foreground(
    real: RealWorld, control_plane: ControlPlane
) -> None:
    substrate = reference()
    uid = real.compose(substrate)
    path = f"{real.all(VM)}/{substrate.name}"
    finalizer = {"metadata": {"finalizers": ["tests.plexsphere.com/slow"]}}
    patched = real.admin.patch(path, finalizer)
    assert patched.ok

    await real.cluster.substrates.delete_object(substrate, real.namespace, uid=uid)

    # As it was written: the collector takes the mark off once it finds nothing below.
    client = await open_client(control_plane.kubeconfig)
    version = patched.body["metadata"]["resourceVersion"]
    async with aclosing(client.watch(real.all(VM), resource_version=version)) as changes:
        written = (await anext(changes))["object"]["metadata"]
    await client.close()
    assert written["name"] == substrate.name
    assert "deletionTimestamp" in written
    assert "foregroundDeletion" in written["finalizers"]


async def test_the_same_status_again_is_no_change(real: RealWorld) -> None:
    record = real.new_record()
    await real.cluster.records.write_status(record, {"phase": "Pending"})
    before = real.live_record(record)
    assert before is not None

    await real.cluster.records.write_status(before, {"phase": "Pending"})

    assert real.live_record(record) == before


async def test_a_status_that_breaks_the_schema_is_no_stale_record(real: RealWorld) -> None:
    record = real.new_record()

    with pytest.raises(KubernetesError, match="phase") as refused:
        await real.cluster.records.write_status(record, {"phase": "Sideways"})

    assert refused.value.status == 422


async def test_a_finalizer_goes_from_where_it_stands_now(real: RealWorld) -> None:
    record = real.new_record()
    path = f"{real.all(RECORD)}/{record['metadata']['name']}"
    finalizers = ["a.example.org/x", "b.example.org/y", names.FINALIZER, "c.example.org/z"]
    assert real.admin.patch(path, {"metadata": {"finalizers": finalizers}}).ok

    await real.cluster.records.remove_finalizer(record)

    live = real.live_record(record)
    assert live is not None
    assert names.FINALIZER not in live["metadata"]["finalizers"]
    assert len(live["metadata"]["finalizers"]) == 3


async def test_an_event_says_who_when_and_about_what(real: RealWorld) -> None:
    record = real.new_record()

    await real.cluster.records.record_event(record, reason="Enrolling", message="it boots")

    items = real.admin.get(f"{real.path}/events").body["items"]
    about = {item["involvedObject"]["kind"]: item for item in items}
    assert set(about) == {names.RECORD_KIND, names.XR_KIND}
    for item in items:
        seen = datetime.fromisoformat(item["lastTimestamp"])
        assert abs(datetime.now(UTC) - seen) < timedelta(minutes=5)
        assert item["involvedObject"]["namespace"] == real.namespace
        assert item["source"]["component"] == "provisioning-broker"


async def test_an_event_may_be_about_the_longest_of_names(real: RealWorld) -> None:
    record = real.new_record()
    xr = record["spec"]["declaration"]["xr"]
    xr["name"] = f"{'x' * 199}-{'y' * 53}"

    await real.cluster.records.record_event(record, reason="Enrolling", message="m" * 5000)

    assert {event.subject for event in real.events()} == {record["metadata"]["uid"], xr["uid"]}


async def test_a_namespace_in_deletion_takes_no_events_and_holds_nothing_up(
    real: RealWorld,
) -> None:
    record = real.new_record()
    assert real.admin.delete(real.path).ok
    wait_until(
        lambda: "deletionTimestamp" in real.admin.get(real.path).body["metadata"],
        timeout_s=10.0,
        what="the namespace is in deletion",
    )

    await real.cluster.records.record_event(record, reason="NodeDeregistered", message="it left")
    await real.cluster.records.remove_finalizer(record)

    live = real.live_record(record)
    assert live is not None
    assert names.FINALIZER not in live["metadata"]["finalizers"]
