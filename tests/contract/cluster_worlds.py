"""`ManagementCluster` twice: on the fake, and on a real API server.

The two worlds and what tests see and do past the port. The integration tests of the
Kubernetes adapter import the real world.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

import pytest
from uuid_utils.compat import uuid7

from dev.controlplane import ControlPlane
from function.contract import names
from function.contract.conditions import ObservedCondition
from function.contract.record import SubstrateReference, XRReference
from function.contract.secrets import TokenPlaintext
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.gateway import KubernetesGateway
from reconciler.domain.aggregate import ids
from reconciler.domain.protection import external_secret
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.substrates import LiveObject
from reconciler.ports.store.aggregates import IssuedToken
from tests.e2e.deploy import external_secrets, holding
from tests.e2e.deploy.identity import (
    BREAK_GLASS,
    MASTERS,
    RECONCILER,
    Answer,
    Caller,
    wait_until,
)
from tests.e2e.deploy.manifests import example
from tests.e2e.deploy.place import Kind, definition, held
from tests.e2e.deploy.rights import may
from tests.fakes.management_cluster import (
    GONE,
    InMemoryManagementCluster,
    RecordedEvent,
    every_role,
)

ROOT: Final = Path(__file__).parents[2]
VM: Final = (names.BLUEPRINTS_GROUP, "XGenericVM", "xgenericvms")
REALM: Final = (names.BLUEPRINTS_GROUP, "XRealm", "xrealms")
XR: Final = (names.GROUP, names.XR_KIND, "provisionedresources")
RECORD: Final = (names.GROUP, names.RECORD_KIND, "provisioningrecords")
PROVIDER_API: Final = "generic.crossplane.io/v1"
SAMPLE_SECRET: Final = "cloud-credentials-0123456789abcdef"
POLICIES: Final = ("plexsphere-hold", "plexsphere-hold-children", "plexsphere-hold-records")
FOREIGN_FINALIZER: Final = "tests.plexsphere.com/foreign"

_POLICY_ROOT: Final = "/apis/admissionregistration.k8s.io/v1"
_POLICY_OBJECTS: Final = f"{_POLICY_ROOT}/validatingadmissionpolicies"
_BINDINGS: Final = f"{_POLICY_ROOT}/validatingadmissionpolicybindings"
_PLANE: Final = pytest.StashKey[ControlPlane]()
_SERVED_TIMEOUT_S: Final = 30.0

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakening:
    """One way in which a policy stays under its name and no longer holds everybody.

    Attributes:
        of_binding: Whether it is done to the binding, or else to the policy.
        change: What it does to the spec; None deletes the object.
    """

    of_binding: bool
    change: Callable[[Object], object] | None = None

    def applied(self, body: Object) -> Object:
        changed = copy.deepcopy(body)
        assert self.change is not None
        self.change(changed["spec"])
        assert changed != body
        return changed


_SOME: Final = {"matchLabels": {"team": "checkout"}}
_OTHERS: Final = {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}
_SPARED: Final = {
    "apiGroups": ["cloud.example.org"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["*"],
}
_JANE: Final = {"name": "not-jane", "expression": "request.userInfo.username != 'jane'"}


def _any(spec: Object) -> None:
    spec["validations"][0]["expression"] = f"true || ({spec['validations'][0]['expression']})"


WEAKENINGS: Final = {
    "no-binding": Weakening(of_binding=True),
    "audit-only": Weakening(
        of_binding=True, change=lambda spec: spec.update(validationActions=["Audit"])
    ),
    "bound-to-some-namespaces": Weakening(
        of_binding=True,
        change=lambda spec: spec.update(matchResources={"namespaceSelector": _OTHERS}),
    ),
    "bound-to-some-objects": Weakening(
        of_binding=True, change=lambda spec: spec.update(matchResources={"objectSelector": _SOME})
    ),
    "bound-but-to-a-kind": Weakening(
        of_binding=True,
        change=lambda spec: spec.update(matchResources={"excludeResourceRules": [_SPARED]}),
    ),
    "no-policy": Weakening(of_binding=False),
    "failing-open": Weakening(
        of_binding=False, change=lambda spec: spec.update(failurePolicy="Ignore")
    ),
    "some-namespaces": Weakening(
        of_binding=False,
        change=lambda spec: spec["matchConstraints"].update(namespaceSelector=_OTHERS),
    ),
    "a-kind-less": Weakening(
        of_binding=False,
        change=lambda spec: spec["matchConstraints"].update(
            excludeResourceRules=[
                *spec["matchConstraints"].get("excludeResourceRules", []),
                _SPARED,
            ]
        ),
    ),
    "somebody-more-exempt": Weakening(
        of_binding=False, change=lambda spec: spec["matchConditions"].append(_JANE)
    ),
    "an-expression-that-is-always-true": Weakening(of_binding=False, change=_any),
    "a-rule-less": Weakening(of_binding=False, change=lambda spec: spec["validations"].pop()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What a token Secret delivers, and whose it is."""

    token: str
    generation: int
    owner: str


class ClusterWorld(Protocol):
    """A management cluster, and what tests see and do past the port."""

    @property
    def cluster(self) -> ManagementCluster:
        """The port."""
        ...

    @property
    def namespace(self) -> str:
        """Where everything of a test lives."""
        ...

    def new_record(self, name: str = "", *, controller: XRReference | None = None) -> Object:
        """Make a record as the function would, with a foreign finalizer before ours."""
        ...

    def remove_record(self, record: Object) -> None:
        """Take a record away, finalizers or not."""
        ...

    def live_record(self, record: Object) -> Object | None:
        """Return what stands under a record's name."""
        ...

    def compose(
        self, reference: SubstrateReference, *, controller: XRReference | None = None, **state: Any
    ) -> str:
        """Make a substrate, `terminating` or not, and return its uid."""
        ...

    def say(self, reference: SubstrateReference, kind: str, said: ObservedCondition) -> None:
        """Have a substrate say one condition of itself."""
        ...

    def remove(self, reference: SubstrateReference) -> None:
        """Take a substrate away, whatever holds it."""
        ...

    def live(self, reference: SubstrateReference) -> LiveObject | None:
        """Return a substrate."""
        ...

    def new_xr(
        self,
        *,
        finalizers: Sequence[str] = (),
        terminating: bool = False,
        paused: str | None = None,
    ) -> XRReference:
        """Make an XR."""
        ...

    def new_provider_config(
        self, name: str, annotations: Mapping[str, str], *, secret: str | None = None
    ) -> None:
        """Make a ProviderConfig past the broker."""
        ...

    def new_secret(self, name: str) -> None:
        """Make a Secret past the broker."""
        ...

    def new_external_secret(self, name: str) -> None:
        """Make an ExternalSecret past the broker."""
        ...

    def external_secret(self, name: str) -> Object | None:
        """Return an ExternalSecret's spec."""
        ...

    def credential_holds(self, name: str) -> set[str]:
        """Return the kinds that carry the hold under a credential's name."""
        ...

    def credential_writes(self, name: str) -> object:
        """Return what differs once one of them was written."""
        ...

    def held(self) -> tuple[str | None, str | None]:
        """Return the namespace's hold label and record count."""
        ...

    def namespace_writes(self) -> object:
        """Return what differs once the namespace was written."""
        ...

    def delivered(self, name: str) -> Delivered | None:
        """Return what a token Secret says."""
        ...

    def events(self) -> Sequence[RecordedEvent]:
        """Return the Events in the namespace."""
        ...

    @contextmanager
    def unenforced(self, policy: str, weakening: Weakening) -> Iterator[None]:
        """Have a policy or its binding say less, or be missing."""
        ...


def reference(kind: Kind = VM) -> SubstrateReference:
    """Name an object of a kind that nobody made yet."""
    version = f"{kind[0]}/v1alpha1"
    return SubstrateReference(api_version=version, kind=kind[1], name=f"pr-{uuid4()}")


def token(generation: int = 1) -> IssuedToken:
    """Make a token that no store knows."""
    return IssuedToken(
        id=ids.BootstrapTokenID(uuid7()),
        generation=generation,
        plaintext=TokenPlaintext(f"sample-{uuid4()}"),
        expires_at=datetime.now(UTC) + timedelta(hours=1),
    )


def provider_config(namespace: str, *, credential: str = "acme", api: str = PROVIDER_API) -> Object:
    """Render a ProviderConfig as the broker would."""
    metadata = {
        "name": "generic",
        "namespace": namespace,
        "labels": held(),
        "annotations": {ANNOTATION_CREDENTIAL: credential},
    }
    return {
        "apiVersion": api,
        "kind": "ProviderConfig",
        "metadata": metadata,
        "spec": _credentials(SAMPLE_SECRET),
    }


def _credentials(secret: str) -> Object:
    return {"credentials": {"secretRef": {"name": secret}}}


class MemoryWorld:
    """The fake, and its state."""

    def __init__(self) -> None:
        version = f"{names.BLUEPRINTS_GROUP}/v1alpha1"
        kinds = {
            (version, VM[1]): True,
            (version, REALM[1]): False,
            (names.API_VERSION, XR[1]): True,
            (PROVIDER_API, "ProviderConfig"): True,
            (external_secret.API_VERSION, external_secret.KIND): True,
            ("v1", "ConfigMap"): True,
        }
        forbidden = {("v1", "ConfigMap", verb) for verb in ("get", "patch", "delete")}
        self.fake = InMemoryManagementCluster(
            kinds=kinds, composites={(version, VM[1])}, forbidden=forbidden, xr=GONE
        )
        self.cluster: ManagementCluster = every_role(self.fake)
        self.namespace = f"contract-{uuid4().hex[:8]}"

    def new_record(self, name: str = "", *, controller: XRReference | None = None) -> Object:
        record = _record(self.namespace, name, controller)
        record["metadata"]["uid"] = str(uuid4())
        record["metadata"]["resourceVersion"] = "1"
        self.fake.records[self.namespace, record["metadata"]["name"]] = record
        return copy.deepcopy(record)

    def remove_record(self, record: Object) -> None:
        self.fake.records[self.namespace, record["metadata"]["name"]] = None

    def live_record(self, record: Object) -> Object | None:
        return copy.deepcopy(self.fake.records[self.namespace, record["metadata"]["name"]])

    def compose(
        self, reference: SubstrateReference, *, controller: XRReference | None = None, **state: Any
    ) -> str:
        uid = str(uuid4())
        self.fake.compose(reference, uid=uid, controller=controller)
        self._change(reference, **state)
        return uid

    def say(self, reference: SubstrateReference, kind: str, said: ObservedCondition) -> None:
        key = (reference.api_version, reference.kind, reference.name)
        self.fake.said[key] = {kind: (said.status, said.reason, said.message)}

    def remove(self, reference: SubstrateReference) -> None:
        self._change(reference, released=True)
        self.fake.drop(reference)

    def live(self, reference: SubstrateReference) -> LiveObject | None:
        return self.fake.objects.get((reference.api_version, reference.kind, reference.name))

    def new_xr(
        self,
        *,
        finalizers: Sequence[str] = (),
        terminating: bool = False,
        paused: str | None = None,
    ) -> XRReference:
        xr = _xr(str(uuid4()))
        facts = XRFacts(
            exists=True,
            terminating=terminating,
            composing_finalizer=names.CROSSPLANE_FINALIZER in finalizers,
            paused=paused == "true",
        )
        self.fake.xrs[xr.api_version, xr.kind, xr.name] = (xr.uid, facts)
        return xr

    def new_provider_config(
        self, name: str, annotations: Mapping[str, str], *, secret: str | None = None
    ) -> None:
        self.fake.provider_configs[self.namespace, name] = annotations.get(ANNOTATION_CREDENTIAL)
        self.fake.provider_config_secrets[self.namespace, name] = secret

    def new_secret(self, name: str) -> None:
        self.fake.credentials.add((self.namespace, name))

    def new_external_secret(self, name: str) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        self.fake.external_secrets[self.namespace, name] = {"metadata": metadata, "spec": {}}

    def external_secret(self, name: str) -> Object | None:
        found = self.fake.external_secrets.get((self.namespace, name))
        return None if found is None else found["spec"]

    def credential_holds(self, name: str) -> set[str]:
        return {kind for kind, *where in self.fake.held if where == [self.namespace, name]}

    def credential_writes(self, name: str) -> object:
        return len(self.fake.journal)

    def held(self) -> tuple[str | None, str | None]:
        records = self.fake.records_in.get(self.namespace, 0)
        return ("true", str(records)) if records else (None, None)

    def namespace_writes(self) -> object:
        return len(self.fake.journal)

    def delivered(self, name: str) -> Delivered | None:
        found = self.fake.secrets.get((self.namespace, name))
        if found is None:
            return None
        return Delivered(
            token=found.plaintext.reveal(),
            generation=found.generation,
            owner=self.fake.secret_owners[self.namespace, name],
        )

    def events(self) -> Sequence[RecordedEvent]:
        return self.fake.events

    @contextmanager
    def unenforced(self, policy: str, weakening: Weakening) -> Iterator[None]:
        self.fake.unenforced = policy
        yield
        self.fake.unenforced = ""

    def _change(self, reference: SubstrateReference, **state: Any) -> None:
        key = (reference.api_version, reference.kind, reference.name)
        self.fake.objects[key] = replace(self.fake.objects[key], **state)


class RealWorld:
    """A namespace of a real API server; `admin` sees and does what tests ask for."""

    def __init__(self, gateway: KubernetesGateway, admin: Caller) -> None:
        self.cluster: ManagementCluster = gateway
        self.admin = admin.as_user("tests", MASTERS, BREAK_GLASS)
        self.namespace = names.project_namespace(uuid4())
        self.path = f"/api/v1/namespaces/{self.namespace}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        _ok(self.admin.create("/api/v1/namespaces", body))

    def all(self, kind: Kind) -> str:
        """Return the path of a kind's collection here."""
        return f"/apis/{kind[0]}/v1alpha1/namespaces/{self.namespace}/{kind[2]}"

    def new_record(self, name: str = "", *, controller: XRReference | None = None) -> Object:
        body = _record(self.namespace, name, controller)
        return _ok(self.admin.create(self.all(RECORD), body)).body

    def remove_record(self, record: Object) -> None:
        self._strike(f"{self.all(RECORD)}/{record['metadata']['name']}")

    def live_record(self, record: Object) -> Object | None:
        return self._found(f"{self.all(RECORD)}/{record['metadata']['name']}")

    def compose(
        self, reference: SubstrateReference, *, controller: XRReference | None = None, **state: Any
    ) -> str:
        metadata: Object = {"name": reference.name, "labels": held()}
        if controller is not None:
            owner = controller.model_dump(by_alias=True)
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        return str(self._make(VM, metadata, **state)["metadata"]["uid"])

    def say(self, reference: SubstrateReference, kind: str, said: ObservedCondition) -> None:
        words = {"status": said.status, "reason": said.reason, "message": said.message}
        told = {"type": kind, **words, "lastTransitionTime": "2026-11-21T12:00:00Z"}
        path = f"{self.all(VM)}/{reference.name}"
        _ok(self.admin.patch(path, {"status": {"conditions": [told]}}))

    def remove(self, reference: SubstrateReference) -> None:
        self._strike(f"{self.all(VM)}/{reference.name}")

    def live(self, reference: SubstrateReference) -> LiveObject | None:
        found = self._found(f"{self.all(VM)}/{reference.name}")
        if found is None:
            return None
        metadata = found["metadata"]
        released = (metadata.get("annotations") or {}).get(names.ANNOTATION_RELEASED)
        claim = (metadata.get("labels") or {}).get("crossplane.io/claim-name")
        return LiveObject(
            uid=metadata["uid"],
            terminating="deletionTimestamp" in metadata,
            released=released == "true",
            held=(metadata.get("labels") or {}).get(names.LABEL_HOLD) == "true",
            below_held=claim is not None,
            controller=_controller(metadata),
        )

    def new_xr(
        self,
        *,
        finalizers: Sequence[str] = (),
        terminating: bool = False,
        paused: str | None = None,
    ) -> XRReference:
        metadata: Object = {"name": _xr("").name, "finalizers": list(finalizers)}
        if paused is not None:
            metadata["annotations"] = {names.PAUSED: paused}
        made = self._make(XR, metadata, terminating=terminating)
        return _xr(made["metadata"]["uid"], made["metadata"]["name"])

    def new_provider_config(
        self, name: str, annotations: Mapping[str, str], *, secret: str | None = None
    ) -> None:
        body = provider_config(self.namespace)
        body["spec"] = {} if secret is None else _credentials(secret)
        body["metadata"] |= {"name": name, "annotations": dict(annotations)}
        path = f"/apis/{PROVIDER_API}/namespaces/{self.namespace}/providerconfigs"
        _ok(self.admin.create(path, body))

    def new_secret(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        _ok(self.admin.create(f"{self.path}/secrets", body))

    def new_external_secret(self, name: str) -> None:
        body = {
            "apiVersion": external_secret.API_VERSION,
            "kind": external_secret.KIND,
            "metadata": {"name": name},
        }
        _ok(self.admin.create(external_secrets.path(self.namespace), body))

    def external_secret(self, name: str) -> Object | None:
        found = self._found(external_secrets.path(self.namespace, name))
        return None if found is None else found.get("spec", {})

    def credential_holds(self, name: str) -> set[str]:
        return {
            kind
            for kind, metadata in self._credential(name).items()
            if metadata.get("labels", {}).get(names.LABEL_HOLD) == "true"
        }

    def credential_writes(self, name: str) -> object:
        return {
            kind: metadata["resourceVersion"] for kind, metadata in self._credential(name).items()
        }

    def _credential(self, name: str) -> dict[str, Object]:
        paths = {
            "Secret": f"{self.path}/secrets/{name}",
            external_secret.KIND: external_secrets.path(self.namespace, name),
        }
        found = {kind: self._found(path) for kind, path in paths.items()}
        return {kind: item["metadata"] for kind, item in found.items() if item is not None}

    def held(self) -> tuple[str | None, str | None]:
        metadata = self.admin.get(self.path).body["metadata"]
        annotations = metadata.get("annotations") or {}
        return metadata["labels"].get(names.LABEL_HOLD), annotations.get(names.ANNOTATION_RECORDS)

    def namespace_writes(self) -> object:
        return self.admin.get(self.path).body["metadata"]["resourceVersion"]

    def delivered(self, name: str) -> Delivered | None:
        found = self._found(f"{self.path}/secrets/{name}")
        if found is None:
            return None
        data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
        (owner,) = found["metadata"]["ownerReferences"]
        return Delivered(
            token=data["token"], generation=int(data["generation"]), owner=owner["uid"]
        )

    def events(self) -> Sequence[RecordedEvent]:
        return [
            RecordedEvent(
                item["involvedObject"]["uid"],
                item["reason"],
                item["message"],
                item["type"] == "Warning",
            )
            for item in self.admin.get(f"{self.path}/events").body["items"]
        ]

    @contextmanager
    def unenforced(self, policy: str, weakening: Weakening) -> Iterator[None]:
        root = _BINDINGS if weakening.of_binding else _POLICY_OBJECTS
        path = f"{root}/{policy}"
        body = self.admin.get(path).body
        if weakening.change is None:
            _ok(self.admin.delete(path))
        else:
            self._replace(path, weakening.applied(body))
        try:
            yield
        finally:
            if weakening.change is None:
                fresh = {key: body["metadata"][key] for key in ("name", "labels")}
                _ok(self.admin.create(root, {**body, "metadata": fresh}))
            else:
                self._replace(path, body)

    def _replace(self, path: str, body: Object) -> None:
        """Put a spec in place of another, though the API server writes the status meanwhile."""

        def replaced() -> bool:
            found = self.admin.get(path).body
            return self.admin.request("PUT", path, {**found, "spec": body["spec"]}).ok

        wait_until(replaced, timeout_s=_SERVED_TIMEOUT_S, what=f"{path} is replaced")

    def clear(self) -> None:
        """Take away what a test left, whatever holds it."""
        for kind in (VM, XR, RECORD):
            for item in self.admin.get(self.all(kind)).body["items"]:
                self._strike(f"{self.all(kind)}/{item['metadata']['name']}")
        self.admin.delete(self.path)

    def _make(self, kind: Kind, metadata: Object, *, terminating: bool = False) -> Object:
        body = {"apiVersion": f"{kind[0]}/v1alpha1", "kind": kind[1], "metadata": metadata}
        if terminating and not metadata.get("finalizers"):
            metadata["finalizers"] = [FOREIGN_FINALIZER]
        made = _ok(self.admin.create(self.all(kind), body)).body
        if terminating:
            _ok(self.admin.delete(f"{self.all(kind)}/{metadata['name']}"))
        return made

    def _strike(self, path: str) -> None:
        self.admin.delete(path)
        self.admin.patch(path, {"metadata": {"finalizers": None}})
        wait_until(
            lambda: self._found(path) is None,
            timeout_s=_SERVED_TIMEOUT_S,
            what=f"{path} is gone",
        )

    def _found(self, path: str) -> Object | None:
        answer = self.admin.get(path)
        return None if answer.status == 404 else _ok(answer).body


def shared_control_plane(config: pytest.Config, folders: pytest.TempPathFactory) -> ControlPlane:
    """Return the one control plane of a test session, with all that is ours on it.

    Modules of different folders share it, which no fixture outside a common conftest can.
    """
    if _PLANE not in config.stash:
        plane = ControlPlane.from_environment(folders.mktemp("cluster"))
        plane.start()
        config.add_cleanup(plane.stop)
        furnish(plane)
        config.stash[_PLANE] = plane
    return config.stash[_PLANE]


@asynccontextmanager
async def real_world(plane: ControlPlane) -> AsyncIterator[RealWorld]:
    """Yield a namespace of its own; the gateway runs as the reconciler's account."""
    client = await open_client(reconciler_kubeconfig(plane))
    world = RealWorld(KubernetesGateway(client), Caller(plane.kubeconfig))
    await world.cluster.namespaces.hold_namespace(world.namespace, records=0)
    await_rights(world.admin, world.namespace)
    try:
        yield world
    finally:
        world.clear()
        await client.close()


def await_rights(admin: Caller, namespace: str) -> None:
    """Wait until the broker's RoleBinding in a namespace is in effect."""
    wait_until(
        lambda: may(admin, RECONCILER, "get", "/secrets", namespace=namespace),
        timeout_s=_SERVED_TIMEOUT_S,
        what=f"the reconciler has its rights in {namespace}",
    )


def reconciler_kubeconfig(plane: ControlPlane) -> Path:
    """Return a kubeconfig with a token of the reconciler's own service account."""
    return plane.service_account_kubeconfig("plexsphere-system", "provisioning-broker")


def furnish(plane: ControlPlane) -> None:
    """Put on a control plane what is ours, and the stand-ins for what is not."""
    holding.apply_kinds(plane)
    holding.apply_policies(
        plane, "account", *(name.removeprefix("plexsphere-") for name in POLICIES)
    )
    realm = definition(REALM)
    realm["spec"]["scope"] = "Cluster"
    composite = definition(VM)
    composite["spec"]["names"]["categories"] = ["crossplane", "composite"]
    # On a cluster with Crossplane some of them are an XRD's.
    for kind in (composite, definition(XR), realm):
        name = kind["metadata"]["name"]
        if plane.cluster.get(kind["apiVersion"], kind["kind"], name) is None:
            plane.apply(kind)
    plane.apply(ROOT / "dev/cloud/providerconfig-crd.yaml", external_secrets.definition())
    admin = Caller(plane.kubeconfig)
    paths = [f"/apis/{kind[0]}/v1alpha1/{kind[2]}" for kind in (VM, REALM, XR, RECORD)]
    paths.append(f"/apis/{external_secret.API_VERSION}/{external_secrets.PLURAL}")
    for path in (*paths, f"/apis/{PROVIDER_API}/providerconfigs"):
        wait_until(
            lambda path=path: admin.get(path).ok,  # type: ignore[misc]  # mypy cannot type a default in a lambda
            timeout_s=_SERVED_TIMEOUT_S,
            what=f"{path} is served",
        )


def _record(namespace: str, name: str, controller: XRReference | None = None) -> Object:
    record = example(names.RECORD_KIND, name or f"web-{uuid4().hex[:10]}")
    if controller is not None:
        owner = {**controller.model_dump(by_alias=True), "controller": True}
        record["metadata"]["ownerReferences"] = [owner]
    record["metadata"]["namespace"] = namespace
    record["metadata"]["finalizers"] = [FOREIGN_FINALIZER, names.FINALIZER]
    record["spec"]["declaration"]["xr"]["uid"] = str(uuid4())
    return record


def _xr(uid: str, name: str = "") -> XRReference:
    name = name or f"web-{uuid4().hex[:10]}"
    return XRReference(api_version=names.API_VERSION, kind=names.XR_KIND, name=name, uid=uid)


def _controller(metadata: Object) -> XRReference | None:
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller"):
            return XRReference.model_validate(
                {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}
            )
    return None


def _ok(answer: Answer) -> Answer:
    assert answer.ok, answer.message
    return answer
