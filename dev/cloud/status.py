"""Renders a Machine's status as a Crossplane managed resource shows it.

Pure; ``lifecycle`` is the only importer. The document never appears here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dev.cloud.machine import Fault, Machine, Phase, State

_READY: Mapping[Phase, tuple[str, str]] = {
    Phase.CREATING: ("False", "Creating"),
    Phase.BOOTING: ("False", "Creating"),
    Phase.RUNNING: ("True", "Available"),
    Phase.FAILED: ("False", "Unavailable"),
    Phase.DELETING: ("False", "Deleting"),
    Phase.DELETED: ("False", "Deleting"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition without its times, which depend on what stood there before."""

    type: str
    status: str
    reason: str
    message: str = ""


def quota_message(machine: Machine) -> str:
    """What the cloud says when it refuses a machine for good."""
    return (
        f"cannot create machine: the quota for instance type {machine.instance_type!r} in region "
        f"{machine.region!r} is used up"
    )


def refusal_message(machine: Machine) -> str:
    """What the cloud says as long as it refuses a machine that it may still make."""
    return (
        f"cannot create machine: no room for instance type {machine.instance_type!r} in region "
        f"{machine.region!r} just now"
    )


def conditions(machine: Machine, state: State | None, fault: str) -> list[Condition]:
    """Answers the conditions; ``fault`` is what went wrong last, empty when nothing did."""
    if machine.paused:
        return [Condition(type="Synced", status="False", reason="ReconcilePaused")]
    if state is not None and state.phase is Phase.FAILED:
        message = quota_message(machine)
        return [
            Condition(type="Ready", status="False", reason="Unavailable", message=message),
            Condition(type="Synced", status="False", reason="ReconcileError", message=message),
            Condition(
                type="ProvisioningFailed", status="True", reason="QuotaExceeded", message=message
            ),
        ]
    if machine.faults.create is Fault.REFUSE and (state is None or state.phase is Phase.CREATING):
        fault = refusal_message(machine)
    ready, reason = ("False", "Creating") if state is None else _READY[state.phase]
    synced = Condition(type="Synced", status="True", reason="ReconcileSuccess")
    if fault:
        synced = Condition(type="Synced", status="False", reason="ReconcileError", message=fault)
    return [Condition(type="Ready", status=ready, reason=reason), synced]


def render(
    machine: Machine, state: State | None, observed: Mapping[str, Any], *, fault: str, now: str
) -> dict[str, Any]:
    """Answers the whole status; equal to ``observed`` when nothing changed.

    Args:
        machine: The object's view.
        state: From disk.
        observed: The status that stands there now.
        fault: What went wrong last, empty when nothing did.
        now: RFC 3339, for conditions whose status changes.
    """
    before = {item["type"]: item for item in observed.get("conditions", ())}
    wanted = conditions(machine, state, fault)
    rendered = [_with_times(item, before.get(item.type), machine, now) for item in wanted]
    if machine.paused:
        kept: Sequence[Any] = [item for kind, item in before.items() if kind != "Synced"]
        return {**observed, "conditions": [*kept, *rendered]}
    at_provider: dict[str, Any] = {}
    if state is not None and state.phase is not Phase.FAILED:
        shown = Phase.DELETING if state.phase is Phase.DELETED else state.phase
        at_provider = {
            "machineID": state.machine_id,
            "state": shown.value,
            "createdAt": state.created_at,
        }
        if state.exit_code is not None:
            at_provider["exitCode"] = state.exit_code
    return {"conditions": rendered, "atProvider": at_provider}


def _with_times(
    condition: Condition, before: Mapping[str, Any] | None, machine: Machine, now: str
) -> dict[str, Any]:
    kept = before is not None and before.get("status") == condition.status
    rendered: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "lastTransitionTime": before["lastTransitionTime"] if before and kept else now,
        "observedGeneration": machine.generation,
    }
    if condition.message:
        rendered["message"] = condition.message
    return rendered
