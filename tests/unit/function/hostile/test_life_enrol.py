"""`Enrol` over whole lives: several resources, siblings, and steps that change their mind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from function.contract import names
from tests.unit.function import given
from tests.unit.function.enrol_world import entry, server
from tests.unit.function.hostile.bases import NETWORK, THEIRS, Base
from tests.unit.function.hostile.calls import effort
from tests.unit.function.hostile.life import Life
from tests.unit.function.hostile.plane import Object, Plane

MACHINES = ("server", "node-0", "node-1")
SIBLINGS = ("network", "volume")
ENTRIES = (
    entry("server", hold=["network"]),
    entry("node-*", hold=["network", "volume"], paths={"tags": "spec.forProvider.tags[]"}),
)


class EnrolPlane(Plane):
    """An XR of somebody's own kind, and earlier steps that compose what they please.

    Attributes:
        given: What earlier steps compose, by name.
        entries: The step's resources.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "apiVersion": "platform.example.org/v1",
                "kind": "Pool",
                "metadata": {"name": "pool", "namespace": given.NAMESPACE, "uid": "u-1"},
                "spec": {"labels": {"team": "checkout"}},
            }
        )
        self.given: dict[str, Object] = {"server": server(), "network": NETWORK, "theirs": THEIRS}
        self.entries: list[Object] = [dict(one) for one in ENTRIES]

    def step(self) -> Object:
        return {
            "apiVersion": names.INPUT_API_VERSION,
            "kind": "Enrol",
            "resources": self.entries,
        }

    def desired(self) -> Mapping[str, Object]:
        return self.given


class EnrolLife(Life):
    """One XR with up to three machines and two siblings."""

    carriers = (("spec", "forProvider", "userData"), ("spec", "elsewhere"))

    def __init__(self) -> None:
        super().__init__()
        self.plane: EnrolPlane = EnrolPlane()

    def base(self) -> Base:
        carriers = tuple((name, *path) for name in MACHINES for path in self.carriers)
        ours = {*MACHINES, *SIBLINGS, *(f"record-{name}" for name in MACHINES)}
        request = fnv1.RunFunctionRequest()
        return Base(request=request, ours=frozenset(ours), carriers=carriers)

    def record_of(self, name: str) -> str | None:
        record = f"record-{name}"
        meant = any(name.startswith(one["name"].strip("*")) for one in self.plane.entries)
        return record if name in MACHINES and (meant or record in self.plane.seen) else None

    @rule(name=st.sampled_from(MACHINES), image=st.sampled_from(["debian-13", "debian-14"]))
    def compose_a_machine(self, name: str, image: str) -> None:
        self.plane.given[name] = server(image=image)

    @rule(name=st.sampled_from(SIBLINGS), named=st.booleans())
    def compose_a_sibling(self, name: str, named: bool) -> None:
        made: Object = {**NETWORK, "kind": name.title()}
        self.plane.given[name] = {**made, "metadata": {"name": f"pool-{name}"}} if named else made

    @rule(name=st.sampled_from((*MACHINES, *SIBLINGS)))
    def stop_composing(self, name: str) -> None:
        self.plane.given.pop(name, None)

    @rule(number=st.sampled_from([0, 1]), change=st.sampled_from(["drop", "hold", "path", "back"]))
    def edit_the_step(self, number: int, change: str) -> None:
        edits: dict[str, list[Object]] = {
            "drop": [dict(one) for one in ENTRIES if one is not ENTRIES[number]],
            "hold": [{**one, "hold": []} for one in ENTRIES],
            "path": [_at(one, userData="spec.elsewhere") for one in ENTRIES],
            "back": [dict(one) for one in ENTRIES],
        }
        self.plane.entries = edits[change]

    @rule(labels=st.dictionaries(st.sampled_from(["a", "B/c", "\u202eé"]), st.text(max_size=3)))
    def change_labels(self, labels: dict[str, str]) -> None:
        self.plane.xr["spec"]["labels"] = labels

    @rule(retry=st.sampled_from([0, 1, -1, "x"]))
    def raise_retry(self, retry: object) -> None:
        self.plane.xr["spec"]["retry"] = retry

    @precondition(lambda self: self.unneeded())
    @rule(pick=st.integers(min_value=0, max_value=7))
    def let_a_sibling_go(self, pick: int) -> None:
        found = self.unneeded()
        del found[pick % len(found)]["metadata"]["labels"][names.LABEL_HOLD]

    def unneeded(self) -> list[Object]:
        """Held siblings that no record lists."""
        listed = {
            (one["kind"], one["name"])
            for record in self.plane.records()
            for one in record["spec"]["substrate"]
        }
        return [
            one
            for key, one in sorted(self.plane.objects.items())
            if key not in listed
            and names.LABEL_HOLD in one["metadata"].get("labels", {})
            and names.LABEL_RECORD not in one["metadata"]["labels"]
        ]


def _at(one: Object, **paths: Any) -> Object:
    return {**one, "paths": {**one.get("paths", {}), **paths}}


TestEnrolLife = EnrolLife.TestCase
TestEnrolLife.settings = effort(40, 400, stateful_step_count=30)
