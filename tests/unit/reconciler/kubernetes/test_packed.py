"""A packed object is the object, without what nobody reads of it."""

from __future__ import annotations

from typing import Any

import pytest

from function.contract import names
from reconciler.adapters.kubernetes.cache.packed import PackedObjects, pack
from reconciler.adapters.kubernetes.transport.responses import UnreadableError
from reconciler.domain.teardown.force_release import ForceRelease, read
from tests.unit.reconciler import samples

KEY = (samples.NAMESPACE, "web-1-abc")


def _record(**metadata: Any) -> dict[str, Any]:
    return samples.record(resourceVersion="7", **metadata)


def _read(item: dict[str, Any]) -> dict[str, Any]:
    return PackedObjects({KEY: pack(item)})[KEY]


def test_it_reads_as_it_came_but_for_managed_fields() -> None:
    plain = _record()

    assert _read(plain | {"status": {"x": "ü\ud800"}}) == plain | {"status": {"x": "ü\ud800"}}
    assert _read(_record(managedFields=[{"manager": "crossplane"}])) == plain


def test_every_reader_gets_a_copy_of_its_own() -> None:
    objects = PackedObjects({KEY: pack(_record())})

    objects[KEY]["metadata"]["finalizers"].clear()

    assert objects[KEY]["metadata"]["finalizers"] == [names.FINALIZER]


def test_who_gave_a_node_up_stays_known() -> None:
    field = f"f:{names.ANNOTATION_FORCE_RELEASE}"
    fields: dict[str, Any] = {
        "f:metadata": {"f:annotations": {field: {}, "f:other": {}}, "f:labels": {}}
    }
    item = _record(
        annotations={names.ANNOTATION_FORCE_RELEASE: "burnt down"},
        managedFields=[
            {"manager": "crossplane", "fieldsV1": {"f:spec": {}}},
            {"manager": "kubectl-annotate", "operation": "Update", "fieldsV1": fields},
        ],
    )

    found = _read(item)

    assert read(found["metadata"]) == ForceRelease(reason="burnt down", actor="kubectl-annotate")
    assert len(found["metadata"]["managedFields"]) == 1


def test_version_uid_and_generation_are_told_without_reading() -> None:
    packed = pack(_record(generation=3))

    assert (packed.version, packed.uid, packed.generation) == ("7", "record-1", 3)


def test_an_object_without_a_version_is_refused() -> None:
    with pytest.raises(UnreadableError, match="resourceVersion"):
        pack(samples.record())
