"""A control plane in miniature for `Enrol`: what it composes is there in the next call.

An earlier step's resources, an API server that keeps what was composed, and the
reconciler's answers, by hand.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from function import fn
from function.contract import names
from tests.unit.function import given

Object = dict[str, Any]

MANAGER = "apiextensions.crossplane.io/composed/0123"


def server(name: str | None = None, **for_provider: Any) -> Object:
    """What an earlier step composes as a machine."""
    made: Object = {
        "apiVersion": "hcloud.example.org/v1alpha1",
        "kind": "Server",
        "spec": {"forProvider": {"image": "debian-13", "labels": {"step": "one"}, **for_provider}},
    }
    if name is not None:
        made["metadata"] = {"name": name}
    return made


def entry(name: str = "server", **fields: Any) -> Object:
    return {
        "name": name,
        "injectionStrategy": "cloud-init-user-data",
        "provider": "hetzner",
        "labelsFrom": "spec.labels",
        **fields,
    }


class World:
    """One XR of somebody's own kind, its pipeline and its objects.

    Attributes:
        given: What earlier steps compose, by name.
        entries: The step's resources.
        objects: What is there, by composed-resource name.
        secrets: Token Secrets by name.
    """

    def __init__(self, *entries: Object, **given_resources: Object) -> None:
        self.given = given_resources
        self.entries = list(entries) or [entry()]
        self.objects: dict[str, Object] = {}
        self.secrets: dict[str, Object] = {}
        self.elsewhere: list[Object] = []
        self.preview = False
        self.xr: Object = {
            "apiVersion": "platform.example.org/v1",
            "kind": "Pool",
            "metadata": {"name": "pool", "namespace": given.NAMESPACE, "uid": "u-1"},
            "spec": {"labels": {"team": "checkout"}},
        }

    def request(self, found: Mapping[str, Object | None] | None = None) -> fnv1.RunFunctionRequest:
        body: Object = {
            "meta": {"tag": "0123456789abcdef"},
            "input": {
                "apiVersion": names.INPUT_API_VERSION,
                "kind": "Enrol",
                "resources": self.entries,
            },
            "observed": {
                "composite": {"resource": self.xr},
                "resources": {name: {"resource": raw} for name, raw in self.objects.items()},
            },
            "desired": {"resources": {n: {"resource": raw} for n, raw in self.given.items()}},
            "requiredResources": {
                name: {"items": [] if raw is None else [{"resource": raw}]}
                for name, raw in (found or {}).items()
            },
        }
        if self.preview:
            body["context"] = {names.CONTEXT_PREVIEW: True}
        return json_format.ParseDict(body, fnv1.RunFunctionRequest())

    def run(self) -> fnv1.RunFunctionResponse:
        """Call the function until it has everything that it asks for."""
        found: dict[str, Object | None] = {}
        for _ in range(5):
            answer = fn.run(self.request(found))
            wanted = {
                name: self._look_up(selector.kind, selector.match_name)
                for name, selector in answer.requirements.resources.items()
            }
            if wanted == found:
                return answer
            found = wanted
        message = "the requirements never settle"
        raise AssertionError(message)

    def step(self) -> fnv1.RunFunctionResponse:
        """Run once and apply what it says, as Crossplane would."""
        answer = self.run()
        composed = {name: fn.plain(one.resource) for name, one in answer.desired.resources.items()}
        for name in set(self.objects) - set(composed):
            self._delete(name)
        for name, manifest in composed.items():
            self._apply(name, manifest)
        return answer

    def accept(self, name: str = "server", **status: Any) -> None:
        """Be the reconciler that accepts a record and mints its token."""
        record = self.objects[f"record-{name}"]
        identity = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
        secret = f"{record['metadata']['name']}-g1"
        self.secrets[secret] = given.secret()
        record["status"] = {
            "phase": "Provisioning",
            "provisionedResourceID": identity,
            "xrName": f"pr-{identity}",
            "accepted": record["spec"]["declaration"],
            "substrate": "Present",
            "enrolment": {
                "baseURL": "https://api.example.org",
                "plexdDownloadURL": "https://downloads.example.org/plexd-{arch}",
            },
            "bootstrap": {"secretRef": {"name": secret}, "generation": 1, "state": "Issued"},
            **status,
        }

    def say(self, name: str = "server", **status: Any) -> None:
        """Be the reconciler that changes a record's status."""
        self.objects[f"record-{name}"]["status"] |= status

    def finish(self, name: str = "server") -> None:
        """Be the reconciler that takes the finalizer off."""
        del self.objects[f"record-{name}"]

    def enrolled(self, name: str = "server") -> None:
        """Bring a resource to a registered node."""
        self.step()
        self.accept(name)
        self.step()
        self.objects[name]["status"] = {"conditions": [given.READY]}
        node = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
        self.say(name, node=node, phase="Ready")
        self.step()

    def _look_up(self, kind: str, name: str) -> Object | None:
        if kind == "Secret":
            return self.secrets.get(name)
        everything = [
            one for one in (*self.objects.values(), *self.elsewhere) if one["kind"] == kind
        ]
        return next((one for one in everything if one["metadata"]["name"] == name), None)

    def _apply(self, name: str, manifest: Object) -> None:
        old = self.objects.get(name, {})
        # What is observed keeps its name, whatever is composed.
        called = {} if not old else {"name": old["metadata"]["name"]}
        head = {"name": f"pool-{name}", **manifest.get("metadata", {}), **called}
        head["uid"] = old.get("metadata", {}).get("uid") or f"uid-{name}"
        head["managedFields"] = [
            {"manager": MANAGER, "operation": "Apply", "fieldsV1": _fields(manifest)},
            {"manager": "provider", "operation": "Update", "fieldsV1": {"f:spec": {}}},
        ]
        if "deletionTimestamp" in old.get("metadata", {}):
            head["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
        self.objects[name] = {**copy.deepcopy(manifest), "metadata": head}
        if "status" in old:
            self.objects[name]["status"] = old["status"]

    def _delete(self, name: str) -> None:
        if self.objects[name]["metadata"].get("finalizers"):
            self.objects[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            del self.objects[name]


def _fields(value: object) -> Object:
    if not isinstance(value, dict):
        return {}
    return {f"f:{key}": _fields(child) for key, child in value.items()}
