"""Sample objects and requests for the function's tests.

Builders that give a fresh, valid object each time, for a test to change.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from function.contract import names
from function.contract.conditions import ConditionType, DesiredCondition
from function.inputs.declare import declare
from function.model.call import Outcome, Request

PROJECT = "0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"
NAMESPACE = f"plexsphere-project-{PROJECT}"
ID = "0197b1a2-7c3d-7e4f-8a5b-000000000001"
XR_NAME = f"pr-{ID}"
TOKEN = "psb_prod_abcdefghijklmnopqrstuvwxyz_node_aaaabbbbccccddddeeeeffffgg"
SECRET = "web-1-cac0b65617-g1"
RECORD = "web-1-cac0b65617"
STEP = {"apiVersion": names.INPUT_API_VERSION, "kind": "Declare"}

Object = dict[str, Any]


def manifest(kind: str, name: str, spec: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "metadata": {"name": name},
        "spec": copy.deepcopy(dict(spec)),
    }


def xr(**spec: Any) -> Object:
    made = manifest(
        names.XR_KIND,
        "web-1",
        {
            "blueprintRef": {"name": "generic-vm-v1alpha1"},
            "cloudCredentialRef": {"name": "hetzner-eu-main"},
            "parameters": {"region": "nbg1"},
            "labels": {"platform/env": "prod", "team": "checkout"},
            **spec,
        },
    )
    made["metadata"] |= {"namespace": NAMESPACE, "uid": "11111111-2222-3333-4444-555555555555"}
    return made


def blueprint(**spec: Any) -> Object:
    return manifest(
        "BlueprintVersion",
        "generic-vm-v1alpha1",
        {
            "slug": "generic-vm",
            "version": "v1alpha1",
            "injectionStrategy": "cloud-init-user-data",
            "meshRole": "node",
            "providerKinds": ["hetzner", "openstack", "aws", "gcp"],
            "xr": {
                "apiVersion": "blueprints.plexsphere.com/v1alpha1",
                "kind": "XGenericVM",
                "scope": "Namespaced",
            },
            "parameters": [
                {"name": "region", "type": "string", "required": True},
                {"name": "instanceType", "type": "string", "default": "standard-2"},
                {"name": "diskSizeGb", "type": "integer", "default": 40},
            ],
            **spec,
        },
    )


def credential(**spec: Any) -> Object:
    return manifest(
        "CloudCredential",
        "hetzner-eu-main",
        {
            "cloudRef": {"name": "hetzner-eu"},
            "vault": {"mount": "kv", "path": "acme/hetzner"},
            "projects": ["shop"],
            **spec,
        },
    )


def cloud(provider: str = "hetzner") -> Object:
    return manifest("Cloud", "hetzner-eu", {"provider": provider, "endpoint": {}})


def declaration(**fields: Any) -> Object:
    return {
        "xr": {
            "apiVersion": names.API_VERSION,
            "kind": names.XR_KIND,
            "name": "web-1",
            "uid": "11111111-2222-3333-4444-555555555555",
        },
        "resource": "substrate",
        "blueprint": {"name": "generic-vm-v1alpha1", "version": "v1alpha1"},
        "injectionStrategy": "cloud-init-user-data",
        "meshRole": "node",
        "provider": "hetzner",
        "cloudCredential": "hetzner-eu-main",
        "parameters": {"region": "nbg1", "instanceType": "standard-2", "diskSizeGb": 40},
        "labels": {"platform/env": "prod", "team": "checkout"},
        "retry": 0,
        **fields,
    }


def status(**fields: Any) -> Object:
    """A record's status after acceptance, with a live token."""
    return {
        "phase": "Provisioning",
        "provisionedResourceID": ID,
        "xrName": XR_NAME,
        "accepted": declaration(),
        "substrate": "Present",
        "enrolment": {
            "baseURL": "https://api.example.org",
            "plexdDownloadURL": "https://downloads.example.org/plexd-linux-{arch}",
            "plexdSHA256": {"amd64": "a" * 64, "arm64": "b" * 64},
            "plexdImage": "registry.example.org/plexd:v0.8.0",
        },
        "bootstrap": {"secretRef": {"name": SECRET}, "generation": 1, "state": "Issued"},
        "conditions": [condition("Admitted", "True", "Admitted", "the declaration was accepted")],
        **fields,
    }


def record(status: Mapping[str, Any] | None = None, **metadata: Any) -> Object:
    made = manifest(
        names.RECORD_KIND,
        RECORD,
        {
            "declaration": declaration(),
            "substrate": [],
            "observed": {"exists": False, "ready": False, "failed": False, "reason": ""},
        },
    )
    made["metadata"] |= {
        "namespace": NAMESPACE,
        "finalizers": [names.FINALIZER],
        "labels": {names.LABEL_XR: "web-1"},
        **metadata,
    }
    if status is not None:
        made["status"] = copy.deepcopy(dict(status))
    return made


def substrate(*conditions: Mapping[str, Any], **spec: Any) -> Object:
    return {
        "apiVersion": "blueprints.plexsphere.com/v1alpha1",
        "kind": "XGenericVM",
        "metadata": {
            "name": XR_NAME,
            "namespace": NAMESPACE,
            "uid": "99999999-2222-3333-4444-555555555555",
            "labels": {
                names.LABEL_HOLD: "true",
                names.LABEL_RECORD: RECORD,
                "crossplane.io/composite": "web-1",
            },
            "annotations": {
                names.ANNOTATION_GENERATION: "1",
                "crossplane.io/composition-resource-name": "substrate",
            },
            "managedFields": [{"manager": "someone", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "parameters": {"region": "nbg1", "instanceType": "standard-2", "diskSizeGb": 40},
            "userData": f"#cloud-config\n# {TOKEN}\n",
            "cloudTags": {"platform/env": "prod", "team": "checkout"},
            "crossplane": {"resourceRefs": [{"kind": "Machine", "name": "m"}]},
            **spec,
        },
        "status": {"conditions": [dict(each) for each in conditions], "address": "10.0.0.1"},
    }


def secret(token: str = TOKEN, generation: int = 1) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "type": names.TOKEN_SECRET_TYPE,
        "data": {
            "token": base64.b64encode(token.encode()).decode(),
            "generation": base64.b64encode(str(generation).encode()).decode(),
        },
    }


def condition(kind: str, state: str, reason: str = "Because", message: str = "so it is") -> Object:
    return {"type": kind, "status": state, "reason": reason, "message": message}


READY = condition("Ready", "True", "Available", "")


def required(**changes: Object | None) -> dict[str, Object | None]:
    """Every required resource of a fresh XR, looked up; a change replaces or, None, unfinds."""
    return {"blueprint": blueprint(), "credential": credential(), "cloud": cloud(), **changes}


def answer(
    declared: Object | None = None,
    resources: Mapping[str, Object] | None = None,
    found: Mapping[str, Object | None] | None = None,
    *,
    preview: bool = False,
    step: Object | None = None,
) -> Outcome:
    """What the pure function answers."""
    return declare(
        Request(
            xr=xr() if declared is None else declared,
            resources=resources or {},
            required=required() if found is None else found,
            step=STEP if step is None else step,
            preview=preview,
        )
    )


def verdict(outcome: Outcome, kind: ConditionType) -> DesiredCondition:
    (found,) = (each for each in outcome.verdicts if each.type is kind)
    return found


def request(
    declared: Object | None = None,
    resources: Mapping[str, Object] | None = None,
    found: Mapping[str, Object | None] | None = None,
    **fields: Any,
) -> fnv1.RunFunctionRequest:
    """The same as protobuf; `fields` are further fields of the request in JSON form."""
    looked = required() if found is None else found
    body = {
        "meta": {"tag": "0123456789abcdef0123456789abcdef"},
        "input": STEP,
        "observed": {
            "composite": {"resource": xr() if declared is None else declared},
            "resources": {name: {"resource": raw} for name, raw in (resources or {}).items()},
        },
        "requiredResources": {
            name: {"items": [] if raw is None else [{"resource": raw}]}
            for name, raw in looked.items()
        },
        **fields,
    }
    return json_format.ParseDict(body, fnv1.RunFunctionRequest())
