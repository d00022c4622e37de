"""A control plane in miniature: what is composed is there in the next call.

An API server that keeps objects, Crossplane's run of a pipeline and what it drops, the
reconciler's answers by hand. Unlike `enrol_world`, an object that was dropped may still be
there, and is no longer seen.
"""

from __future__ import annotations

import copy
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function import fn
from function.contract import names
from tests.unit.function import given
from tests.unit.function.hostile.calls import call

Object = dict[str, Any]
Key = tuple[str, str]

MANAGER = "apiextensions.crossplane.io/composed/0123"
GONE = "2026-01-01T00:00:00Z"
ITERATIONS_MAX = 6
"""Calls of one pipeline run, as in Crossplane."""


class Plane(ABC):
    """One XR, its pipeline and its objects.

    Attributes:
        xr: The composite.
        objects: What is there, by kind and name.
        seen: What the XR refers to, by composed-resource name.
        secrets: Token Secrets by name.
    """

    def __init__(self, xr: Object) -> None:
        self.xr = xr
        self.objects: dict[Key, Object] = {}
        self.seen: dict[str, Key] = {}
        self.secrets: dict[str, Object] = {}

    @abstractmethod
    def step(self) -> Object:
        """The step's input."""

    @abstractmethod
    def desired(self) -> Mapping[str, Object]:
        """What earlier steps compose, by name."""

    def request(self, found: Mapping[str, Object | None]) -> fnv1.RunFunctionRequest:
        """The next call."""
        made = fnv1.RunFunctionRequest()
        made.meta.tag = "0123456789abcdef"
        made.input.update(self.step())
        made.observed.composite.resource.update(self.xr)
        for name, raw in self.observed().items():
            made.observed.resources[name].resource.update(raw)
        for name, raw in self.desired().items():
            made.desired.resources[name].resource.update(raw)
        for name, looked in found.items():
            items = made.required_resources[name].items
            if looked is not None:
                items.add().resource.update(looked)
        return made

    def look_up(self, kind: str, name: str) -> Object | None:
        """A required resource."""
        return self.secrets.get(name) if kind == "Secret" else self.objects.get((kind, name))

    def observed(self) -> dict[str, Object]:
        """Composed resources that the XR refers to, by their name."""
        return {name: self.objects[key] for name, key in self.seen.items() if key in self.objects}

    def run(self) -> tuple[fnv1.RunFunctionRequest, fnv1.RunFunctionResponse]:
        """Call the function until it has everything that it asks for."""
        found: dict[str, Object | None] = {}
        for _ in range(ITERATIONS_MAX):
            request = self.request(found)
            answer = call(request)
            wanted = {
                name: self.look_up(selector.kind, selector.match_name)
                for name, selector in answer.requirements.resources.items()
            }
            if wanted == found:
                return request, answer
            found = wanted
        message = "the requirements never settle"
        raise AssertionError(message)

    def apply(self, answer: fnv1.RunFunctionResponse) -> None:
        """Make it so, as Crossplane would."""
        composed = {name: fn.plain(one.resource) for name, one in answer.desired.resources.items()}
        for name in set(self.seen) - set(composed):
            self._drop(self.seen.pop(name))
        for name, manifest in composed.items():
            self._compose(name, manifest)
        self.xr["status"] = {
            **fn.plain(answer.desired.composite.resource).get("status", {}),
            "conditions": [
                given.condition(
                    one.type,
                    {1: "Unknown", 2: "True", 3: "False"}[one.status],
                    one.reason,
                    one.message,
                )
                for one in answer.conditions
            ],
        }

    def records(self) -> list[Object]:
        """Every record that is there, in one order."""
        return [one for key, one in sorted(self.objects.items()) if key[0] == names.RECORD_KIND]

    def substrate(self, record: Object) -> Object | None:
        """What a record lists first, if it is there."""
        for listed in record["spec"]["substrate"][:1]:
            return self.objects.get((listed["kind"], listed["name"]))
        return None

    def accept(self, record: Object) -> None:
        """Be the reconciler that accepts a declaration and mints its first token."""
        name = record["metadata"]["name"]
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
        self.secrets[f"{name}-g1"] = given.secret()
        record["status"] = given.status(
            provisionedResourceID=identity,
            xrName=f"pr-{identity}",
            accepted=copy.deepcopy(record["spec"]["declaration"]),
            bootstrap={"secretRef": {"name": f"{name}-g1"}, "generation": 1, "state": "Issued"},
            providerConfigRef={"kind": "ProviderConfig", "name": "hetzner"},
        )

    def register(self, record: Object) -> None:
        """Be the node that came: the token is consumed."""
        self.secrets.pop(f"{record['metadata']['name']}-g1", None)
        node = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": GONE}
        bootstrap = {**record["status"]["bootstrap"], "state": "Consumed"}
        record["status"] |= {"node": node, "phase": "Ready", "bootstrap": bootstrap}

    def release(self, record: Object) -> None:
        """Be the reconciler that took the node out and lets the substrate go."""
        self.secrets.pop(f"{record['metadata']['name']}-g1", None)
        bootstrap = {**record["status"]["bootstrap"], "state": "Revoked"}
        record["status"] |= {
            "substrate": "Absent",
            "phase": "Deprovisioning",
            "bootstrap": bootstrap,
        }
        substrate = self.substrate(record)
        if substrate is not None:
            note = {names.ANNOTATION_RELEASED: "true"}
            head = substrate["metadata"]
            head["annotations"] = {**head.get("annotations", {}), **note}

    def finish(self, record: Object) -> None:
        """Be the reconciler that takes the finalizer off."""
        del self.objects[(names.RECORD_KIND, record["metadata"]["name"])]

    def delete_unseen(self, record: Object) -> None:
        """Be the reconciler that deletes what no composite would drop any more."""
        for listed in record["spec"]["substrate"][:1]:
            key = (listed["kind"], listed["name"])
            if key not in self.seen.values():
                self.objects.pop(key, None)

    def terminate(self, record: Object) -> None:
        """Be whoever deletes a record."""
        record["metadata"]["deletionTimestamp"] = GONE

    def _compose(self, name: str, manifest: Object) -> None:
        head = {"name": f"pool-{name}", **manifest.get("metadata", {})}
        key = (manifest["kind"], self.seen.get(name, ("", head["name"]))[1])
        if self.seen.get(name, key) != key:
            message = f"{name} became another object"
            raise AssertionError(message)
        old = self.objects.get(key, {})
        kept = old.get("metadata", {})
        head |= {
            "name": key[1],
            "uid": kept.get("uid") or f"uid-{len(self.objects)}",
            "managedFields": [
                {"manager": MANAGER, "operation": "Apply", "fieldsV1": _fields(manifest)},
                {"manager": "provider", "operation": "Update", "fieldsV1": {"f:spec": {}}},
            ],
        }
        head |= {k: kept[k] for k in ("deletionTimestamp",) if k in kept}
        self.seen[name] = key
        self.objects[key] = {**copy.deepcopy(manifest), "metadata": head}
        if "status" in old:
            self.objects[key]["status"] = old["status"]

    def _drop(self, key: Key) -> None:
        one = self.objects.get(key)
        if one is not None and one["metadata"].get("finalizers"):
            one["metadata"]["deletionTimestamp"] = GONE
        else:
            self.objects.pop(key, None)


def _fields(value: object) -> Object:
    if not isinstance(value, dict):
        return {}
    return {f"f:{key}": _fields(child) for key, child in value.items()}
