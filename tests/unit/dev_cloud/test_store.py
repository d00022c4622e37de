"""What the cloud knows survives its process, and facts are told once."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dev.cloud import status
from dev.cloud.machine import Faults, Machine, Phase, State
from dev.cloud.store import Fact, Store

MACHINE = Machine(
    uid="0197b1a2-7c3d",
    namespace="ns",
    name="web",
    generation=3,
    resource_version="5",
    deleting=False,
    claimed=True,
    paused=False,
    faults=Faults(),
    instance_type="small",
    region="eu",
    finalizers=(),
)
RUNNING = State(machine_id="i-1", phase=Phase.RUNNING, created_at="2026-01-01T00:00:00Z")


def facts(root: Path) -> list[Any]:
    return [json.loads(line) for line in (root / "facts.jsonl").read_text().splitlines()]


def test_a_state_is_read_back_by_the_next_process(tmp_path: Path) -> None:
    kept = dataclasses.replace(RUNNING, due_at=12.5, exit_code=3)

    Store(tmp_path).save(MACHINE.uid, kept)

    assert Store(tmp_path).load(MACHINE.uid) == kept


def test_an_unknown_machine_has_no_state(tmp_path: Path) -> None:
    assert Store(tmp_path).load("none") is None


@pytest.mark.parametrize("uid", ["", "../x", "a/b", "A"])
def test_a_uid_cannot_leave_the_root(uid: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot name a folder"):
        Store(tmp_path).folder(uid)


def test_a_fact_is_told_once_even_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.record(Fact.CREATED, MACHINE, "i-1")
    store.record(Fact.CREATED, MACHINE, "i-1")

    Store(tmp_path).record(Fact.CREATED, MACHINE, "i-1")

    assert [fact["fact"] for fact in facts(tmp_path)] == ["created"]
    assert facts(tmp_path)[0] | {"at": ""} == {
        "at": "",
        "fact": "created",
        "namespace": "ns",
        "name": "web",
        "uid": MACHINE.uid,
        "machineID": "i-1",
    }


def test_every_failed_try_is_a_fact_of_its_own(tmp_path: Path) -> None:
    store = Store(tmp_path)

    store.record(Fact.DELETE_FAILED, MACHINE, "i-1")
    store.record(Fact.DELETE_FAILED, MACHINE, "i-1")

    assert len(facts(tmp_path)) == 2


def test_a_line_cut_off_by_a_crash_is_dropped_and_told_again(tmp_path: Path) -> None:
    Store(tmp_path).record(Fact.CREATED, MACHINE, "i-1")
    with (tmp_path / "facts.jsonl").open("a") as stream:
        stream.write('{"at": "x", "fact": "boot')

    Store(tmp_path).record(Fact.BOOTING, MACHINE, "i-1")

    assert [fact["fact"] for fact in facts(tmp_path)] == ["created", "booting"]


def rendered(
    state: State | None, observed: dict[str, Any] | None = None, fault: str = ""
) -> dict[str, Any]:
    return status.render(MACHINE, state, observed or {}, fault=fault, now="2026-01-01T00:00:01Z")


def conditions(shown: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {item["type"]: (item["status"], item["reason"]) for item in shown["conditions"]}


@pytest.mark.parametrize(
    ("phase", "ready"),
    [
        (Phase.CREATING, ("False", "Creating")),
        (Phase.BOOTING, ("False", "Creating")),
        (Phase.RUNNING, ("True", "Available")),
        (Phase.DELETING, ("False", "Deleting")),
        (Phase.DELETED, ("False", "Deleting")),
    ],
)
def test_ready_follows_the_substrate_not_the_document(phase: Phase, ready: tuple[str, str]) -> None:
    shown = rendered(dataclasses.replace(RUNNING, phase=phase, exit_code=1))

    assert conditions(shown) == {"Ready": ready, "Synced": ("True", "ReconcileSuccess")}


def test_a_refused_machine_says_so_terminally() -> None:
    shown = rendered(dataclasses.replace(RUNNING, phase=Phase.FAILED))

    assert conditions(shown)["ProvisioningFailed"] == ("True", "QuotaExceeded")
    assert "quota" in shown["conditions"][2]["message"]
    assert shown["atProvider"] == {}


def test_a_failed_try_shows_in_synced_alone() -> None:
    shown = rendered(RUNNING, fault="cannot delete machine: no")

    assert conditions(shown) == {
        "Ready": ("True", "Available"),
        "Synced": ("False", "ReconcileError"),
    }


def test_what_did_not_change_keeps_its_time() -> None:
    before = rendered(RUNNING)

    after = status.render(MACHINE, RUNNING, before, fault="", now="2026-01-01T09:00:00Z")

    assert after == before


def test_a_pause_shows_and_keeps_the_rest() -> None:
    paused = dataclasses.replace(MACHINE, paused=True)

    shown = status.render(paused, RUNNING, rendered(RUNNING), fault="", now="x")

    assert conditions(shown)["Synced"] == ("False", "ReconcilePaused")
    assert conditions(shown)["Ready"] == ("True", "Available")
    assert shown["atProvider"]["machineID"] == "i-1"
