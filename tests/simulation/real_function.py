"""The real function, asked what the simulation's model of it was asked.

Turning what a run saw into the function's own request, and its answer into the model's.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from function.compose import pipeline
from function.contract import names
from function.inputs.declare import declare
from function.model.call import Outcome, Request
from reconciler.ports.store.aggregates import DrawnToken
from tests.simulation.cluster import SUBSTRATE_KIND, SUBSTRATE_VERSION, Raw
from tests.simulation.composing import Machine, Seen
from tests.unit.reconciler import samples

_STEP: Final = {"apiVersion": names.INPUT_API_VERSION, "kind": "Declare"}


def ask(seen: Seen, *, composes_record: bool) -> Outcome:
    """Return what the real function answers.

    Args:
        seen: What the run saw; its declaration is there.
        composes_record: The XR composes the record; else it was looked up by its name.
    """
    assert seen.declaration is not None
    resources: dict[str, Raw] = {}
    required: dict[str, Raw | None] = {
        "blueprint": _named("BlueprintVersion", "generic-vm-v1alpha1", samples.BLUEPRINT),
        "credential": _named("CloudCredential", "demo-main", samples.CREDENTIAL),
        "cloud": _named("Cloud", "demo", samples.CLOUD),
    }
    if seen.record is not None and composes_record:
        resources[names.RESOURCE_RECORD] = seen.record
    else:
        required[pipeline.REQUIRE_RECORD] = seen.record
    if seen.observed is not None:
        resources[names.RESOURCE_SUBSTRATE] = _substrate(seen.observed, seen.declaration)
    status = {} if seen.record is None else seen.record.get("status") or {}
    name = status.get("xrName")
    if name is not None:
        found = seen.machine(name)
        required[pipeline.REQUIRE_SUBSTRATE] = (
            None if found is None else _substrate(found, seen.declaration)
        )
    secret = ((status.get("bootstrap") or {}).get("secretRef") or {}).get("name")
    if secret is not None:
        token = seen.secret(secret)
        required[pipeline.REQUIRE_TOKEN] = None if token is None else _secret(token)
    return declare(
        Request(
            xr=_xr(seen.declaration),
            resources=resources,
            required=required,
            step=_STEP,
            preview=False,
        )
    )


def _xr(declaration: Raw) -> Raw:
    xr = declaration["xr"]
    return {
        "apiVersion": xr["apiVersion"],
        "kind": xr["kind"],
        "metadata": {"name": xr["name"], "namespace": samples.NAMESPACE, "uid": xr["uid"]},
        "spec": {
            "blueprintRef": {"name": "generic-vm-v1alpha1"},
            "cloudCredentialRef": {"name": "demo-main"},
            "parameters": {"region": "nbg1"},
            "labels": declaration["labels"],
            "retry": declaration["retry"],
        },
    }


def _named(kind: str, name: str, spec: Any) -> Raw:
    body = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": body,
    }  # fmt: skip


def _substrate(machine: Machine, declaration: Raw) -> Raw:
    conditions = [{"type": "Ready", "status": "True" if machine.ready else "False"}]
    if machine.failed:
        failed = {"type": "ProvisioningFailed", "status": "True", "reason": "Quota"}
        conditions.append({**failed, "message": "no more machines"})
    metadata: Raw = {
        "name": machine.name,
        "namespace": samples.NAMESPACE,
        "uid": machine.live.uid,
        "labels": {names.LABEL_HOLD: "true", names.LABEL_RECORD: _record(declaration)},
    }
    if machine.generation is not None:
        metadata["annotations"] = {names.ANNOTATION_GENERATION: str(machine.generation)}
    if machine.live.terminating:
        metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return {
        "apiVersion": SUBSTRATE_VERSION,
        "kind": SUBSTRATE_KIND,
        "metadata": metadata,
        "spec": {"userData": "as it was", "parameters": {"region": "nbg1"}},
        "status": {"conditions": conditions},
    }


def _record(declaration: Raw) -> str:
    xr = declaration["xr"]
    return names.record_name(
        group=names.group_of(xr["apiVersion"]),
        kind=xr["kind"],
        name=xr["name"],
        resource=names.RESOURCE_SUBSTRATE,
    )


def _secret(token: DrawnToken) -> Raw:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": names.TOKEN_SECRET_TYPE,
        "data": {
            names.TOKEN_SECRET_KEY: encoded(token.plaintext.reveal()),
            names.TOKEN_SECRET_GENERATION_KEY: encoded(str(token.generation)),
        },
    }
