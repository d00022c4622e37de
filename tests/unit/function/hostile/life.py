"""Laws of a whole life, and the acts that all lives have in common.

A state machine over a `Plane` whose every step is checked.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from function import fn
from function.contract import names
from tests.unit.function import given
from tests.unit.function.hostile import laws
from tests.unit.function.hostile.bases import Base
from tests.unit.function.hostile.calls import wire
from tests.unit.function.hostile.plane import Object, Plane

SETTLED_WITHIN = 5
"""Runs that it may take until the output, fed back, is the output."""

ROUNDS = st.integers(min_value=1, max_value=5)
"""How long a resource is let alone: long enough for a node to come, or for it to go."""

PICK = st.integers(min_value=0, max_value=7)
"""Which of the records there are an act is about."""


class Life(RuleBasedStateMachine):
    """One XR from its first run on, with everything that others may do meanwhile."""

    plane: Plane
    carriers: tuple[tuple[str, ...], ...]

    @abstractmethod
    def base(self) -> Base:
        """What is ours in the present pipeline."""

    @abstractmethod
    def record_of(self, name: str) -> str | None:
        """The composed-resource name of a resource's record; None: it is no node's."""

    @rule()
    def run_once(self) -> None:
        self.step()

    @initialize(rounds=ROUNDS)
    def begin(self, rounds: int) -> None:
        self.live_on(rounds)

    @rule(rounds=ROUNDS)
    def live_on(self, rounds: int) -> None:
        """Nothing odd happens for a while: reconciler and Crossplane take turns."""
        for _ in range(rounds):
            for record in self.plane.records():
                self.reconcile(record)
            self.step()

    @rule()
    def come_to_rest(self) -> None:
        """Its own output fed back changes nothing."""
        last = b""
        for _ in range(SETTLED_WITHIN):
            now = wire(self.step())
            if now == last:
                return
            last = now
        message = "its own output keeps changing it"
        raise AssertionError(message)

    @precondition(lambda self: self.records("undecided"))
    @rule(pick=PICK)
    def refuse(self, pick: int) -> None:
        said = given.condition("Admitted", "False", "CredentialNotAllowed", "not allowed")
        self.one("undecided", pick).setdefault("status", {})["conditions"] = [said]

    @precondition(lambda self: self.records("alive"))
    @rule(pick=PICK)
    def accept_an_edit(self, pick: int) -> None:
        record = self.one("alive", pick)
        record["status"]["accepted"] = record["spec"]["declaration"]

    @precondition(lambda self: self.records("alive"))
    @rule(pick=PICK)
    def lose_the_token(self, pick: int) -> None:
        self.plane.secrets.pop(f"{self.one('alive', pick)['metadata']['name']}-g1", None)

    @precondition(lambda self: self.records("alive"))
    @rule(pick=PICK, state=st.sampled_from(["True", "False", "Unknown"]))
    def become_ready(self, pick: int, state: str) -> None:
        self._say(pick, given.condition("Ready", state, "Available", "it is"))

    @precondition(lambda self: self.records("alive"))
    @rule(pick=PICK)
    def fail(self, pick: int) -> None:
        said = f"cannot take #cloud-config\n# {given.TOKEN}\n"
        self._say(pick, given.condition("ProvisioningFailed", "True", "Quota", said))

    @precondition(lambda self: self.records("alive"))
    @rule(pick=PICK)
    def delete_the_record(self, pick: int) -> None:
        self.plane.terminate(self.one("alive", pick))

    @rule()
    def apply_the_xr_again(self) -> None:
        """A new XR of the same name sees nothing, and finds what the one before it left."""
        self.plane.seen.clear()

    def reconcile(self, record: Object) -> None:
        """Do what the reconciler does next for a record."""
        match _state(record):
            case "undecided":
                self.plane.accept(record)
            case "alive" if self.plane.substrate(record) is not None:
                self.plane.register(record)
            case "going":
                self.plane.release(record)
            case "out" if self.plane.substrate(record) is None:
                self.plane.finish(record)
            case "out":
                self.plane.delete_unseen(record)

    def records(self, state: str) -> list[Object]:
        """Records by what the reconciler would do next."""
        return [one for one in self.plane.records() if _state(one) == state]

    def one(self, state: str, pick: int) -> Object:
        found = self.records(state)
        return found[pick % len(found)]

    def step(self) -> fnv1.RunFunctionResponse:
        """One run of the pipeline under all laws."""
        before = self.plane.observed()
        request, answer = self.plane.run()
        laws.lawful(self.base(), request, answer)
        laws.records_are_legal(answer)
        asked = [(one.kind, one.match_name) for one in answer.requirements.resources.values()]
        assert len(set(asked)) == len(asked)
        made = {name: fn.plain(one.resource) for name, one in answer.desired.resources.items()}
        self.nothing_is_dropped_too_soon(before, made)
        self.nothing_is_made_in_vain(before, made)
        self.a_bootstrap_stays(before, made)
        self.plane.apply(answer)
        return answer

    def nothing_is_dropped_too_soon(self, before: Object, made: Object) -> None:
        for name in set(before) - set(made):
            record = self.record_of(name)
            if before[name]["kind"] == names.RECORD_KIND:
                assert before[name]["spec"].get("released") is True
            elif record in made or names.LABEL_RECORD in _labels(before[name]):
                assert record is not None
                assert before[record]["status"]["substrate"] == "Absent"
            else:
                assert names.LABEL_HOLD not in _labels(before[name])
        for name in set(before) & set(made):
            if names.LABEL_HOLD in _labels(before[name]):
                assert names.LABEL_HOLD in _labels(made[name])

    def nothing_is_made_in_vain(self, before: Object, made: Object) -> None:
        for name in set(made) - set(before):
            record = self.record_of(name)
            if record is None:
                continue
            key = (made[name]["kind"], made[name]["metadata"]["name"])
            if key in self.plane.objects:
                continue
            declared = made[record]["metadata"]["name"]
            held = self.plane.objects[(names.RECORD_KIND, declared)]
            assert "deletionTimestamp" not in held["metadata"]
            assert held["status"]["substrate"] == "Present"
            assert held["status"]["accepted"]

    def a_bootstrap_stays(self, before: Object, made: Object) -> None:
        for name in set(before) & set(made):
            for path in self.carriers if self.record_of(name) is not None else ():
                document = _at(before[name], path)
                assert document is None or _at(made[name], path) == document

    def _say(self, pick: int, said: Object) -> None:
        substrate = self.plane.substrate(self.one("alive", pick))
        if substrate is not None:
            substrate["status"] = {"conditions": [said]}


def _state(record: Object) -> str:
    status = record.get("status", {})
    if status.get("substrate") == "Absent":
        return "out"
    if not status.get("accepted"):
        return "undecided"
    going = "deletionTimestamp" in record["metadata"] or record["spec"].get("drain")
    return "going" if going else "alive"


def _labels(one: Object) -> Object:
    found = one.get("metadata", {}).get("labels", {})
    return dict(found)


def _at(one: Object, path: tuple[str, ...]) -> Any:
    found: Any = one
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found or None
