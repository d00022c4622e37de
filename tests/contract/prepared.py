"""What a tenant prepares under a name that is ours to use, on the fake and on a real API server.

Making it with a tenant's rights, and reading it back. On the real one the tenant has every
right in the namespace on Secrets, ExternalSecrets and ProviderConfigs, and none on
Projects.
"""

from __future__ import annotations

import copy
from typing import Any, Final, Protocol
from uuid import uuid4

from function.contract import names
from reconciler.domain.protection import external_secret
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from tests.contract.cluster_worlds import (
    FOREIGN_FINALIZER,
    PROVIDER_API,
    MemoryWorld,
    RealWorld,
)
from tests.e2e.deploy import external_secrets
from tests.e2e.deploy.identity import Answer, Caller, wait_until

Object = dict[str, Any]

RELEASED: Final = {names.ANNOTATION_RELEASED: "true"}
OURS: Final = {external_secret.LABEL_MANAGED_BY: external_secret.MANAGED_BY}
SECRET: Final = "Secret"
EXTERNAL: Final = external_secret.KIND
CONFIG: Final = "ProviderConfig"


class Hands(Protocol):
    """What a tenant and an administrator do past the port."""

    def prepare(
        self, kind: str, name: str, *, going: bool = False, credential: str | None = None
    ) -> None:
        """Make one as a tenant: released, marked as ours as far as anybody may."""
        ...

    def end(self, kind: str, name: str) -> None:
        """Delete one that something still waits for."""
        ...

    def finish(self, kind: str, name: str) -> None:
        """Let go what something waited for."""
        ...

    def released(self, kind: str, name: str) -> bool:
        """Tell whether one says that it may be deleted."""
        ...

    def spec(self, name: str) -> Object:
        """Return a ProviderConfig's spec."""
        ...

    def tamper(self, name: str, spec: Object) -> None:
        """Change a ProviderConfig's spec; a held one is refused to all but break-glass."""
        ...

    def writes(self, kind: str, name: str) -> object:
        """Return what differs once one was written."""
        ...

    def new_namespace(self, *, going: bool = False) -> str:
        """Make a namespace that says it is released."""
        ...

    def namespace_released(self, namespace: str) -> bool:
        """Tell whether a namespace says so still."""
        ...


class MemoryHands:
    """Hands on the fake."""

    def __init__(self, world: MemoryWorld) -> None:
        self._fake = world.fake
        self._namespace = world.namespace

    def prepare(
        self, kind: str, name: str, *, going: bool = False, credential: str | None = None
    ) -> None:
        key = (self._namespace, name)
        if kind == SECRET:
            self._fake.credentials.add(key)
        elif kind == EXTERNAL:
            metadata = {"name": name, "namespace": self._namespace, "labels": dict(OURS)}
            self._fake.external_secrets[key] = {"kind": EXTERNAL, "metadata": metadata, "spec": {}}
        else:
            self._fake.provider_configs[key] = None
        self._fake.released.add((kind, *key))
        if going:
            self._fake.going.add((kind, *key))

    def end(self, kind: str, name: str) -> None:
        self._fake.going.add((kind, self._namespace, name))

    def finish(self, kind: str, name: str) -> None:
        key = (self._namespace, name)
        self._fake.going.discard((kind, *key))
        self._fake.credentials.discard(key)
        self._fake.provider_configs.pop(key, None)

    def released(self, kind: str, name: str) -> bool:
        return (kind, self._namespace, name) in self._fake.released

    def spec(self, name: str) -> Object:
        return copy.deepcopy(self._fake.provider_config_specs[self._namespace, name])

    def tamper(self, name: str, spec: Object) -> None:
        self._fake.provider_config_specs[self._namespace, name] |= spec

    def writes(self, kind: str, name: str) -> object:
        return len(self._fake.journal)

    def new_namespace(self, *, going: bool = False) -> str:
        name = f"prepared-{uuid4().hex[:8]}"
        self._fake.released.add(("Namespace", "", name))
        if going:
            self._fake.going.add(("Namespace", "", name))
        return name

    def namespace_released(self, namespace: str) -> bool:
        return ("Namespace", "", namespace) in self._fake.released


class RealHands:
    """Hands on a real API server; the tenant's rights are what RBAC says."""

    def __init__(self, world: RealWorld) -> None:
        self._admin = world.admin
        self._namespace = world.namespace
        self.tenant: Caller = world.admin.as_user("tenant", "system:authenticated")
        self._grant()

    def _grant(self) -> None:
        root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self._namespace}"
        rules = [
            {"apiGroups": [group], "resources": [plural], "verbs": ["*"]}
            for group, plural in (
                ("", "secrets"),
                (external_secrets.GROUP, external_secrets.PLURAL),
                (PROVIDER_API.partition("/")[0], "providerconfigs"),
            )
        ]
        role = {"metadata": {"name": "tenant"}, "rules": rules}
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "User", "name": "tenant", "apiGroup": group}
        reference = {"apiGroup": group, "kind": "Role", "name": "tenant"}
        binding = {"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": reference}
        _ok(self._admin.create(f"{root}/roles", role))
        _ok(self._admin.create(f"{root}/rolebindings", binding))
        where = self._all(SECRET)
        wait_until(lambda: self.tenant.get(where).ok, timeout_s=30, what="the tenant's rights")

    def prepare(
        self, kind: str, name: str, *, going: bool = False, credential: str | None = None
    ) -> None:
        annotations = dict(RELEASED)
        if credential is not None:
            annotations[ANNOTATION_CREDENTIAL] = credential
        metadata: Object = {"name": name, "annotations": annotations, "labels": dict(OURS)}
        if going:
            metadata["finalizers"] = [FOREIGN_FINALIZER]
        version = {SECRET: "v1", EXTERNAL: external_secret.API_VERSION, CONFIG: PROVIDER_API}[kind]
        body = {"apiVersion": version, "kind": kind, "metadata": metadata}
        if kind == CONFIG:
            body["spec"] = {"endpoint": {"url": "https://mine.example.org"}}
        _ok(self.tenant.create(self._all(kind), body))
        if going:
            _ok(self.tenant.delete(f"{self._all(kind)}/{name}"))

    def end(self, kind: str, name: str) -> None:
        path = f"{self._all(kind)}/{name}"
        _ok(self._admin.patch(path, {"metadata": {"finalizers": [FOREIGN_FINALIZER]}}))
        _ok(self._admin.delete(path))

    def finish(self, kind: str, name: str) -> None:
        path = f"{self._all(kind)}/{name}"
        _ok(self._admin.patch(path, {"metadata": {"finalizers": None}}))
        wait_until(lambda: self._admin.get(path).status == 404, timeout_s=30, what=f"{name} gone")

    def released(self, kind: str, name: str) -> bool:
        return _released(_ok(self._admin.get(f"{self._all(kind)}/{name}")).body)

    def spec(self, name: str) -> Object:
        return dict(_ok(self._admin.get(f"{self._all(CONFIG)}/{name}")).body["spec"])

    def tamper(self, name: str, spec: Object) -> None:
        _ok(self._admin.patch(f"{self._all(CONFIG)}/{name}", {"spec": spec}))

    def writes(self, kind: str, name: str) -> object:
        found = _ok(self._admin.get(f"{self._all(kind)}/{name}")).body
        return found["metadata"]["resourceVersion"]

    def new_namespace(self, *, going: bool = False) -> str:
        name = names.project_namespace(uuid4())
        metadata: Object = {"name": name, "annotations": dict(RELEASED)}
        if going:
            metadata["finalizers"] = [FOREIGN_FINALIZER]
        _ok(self._admin.create("/api/v1/namespaces", {"metadata": metadata}))
        if going:
            _ok(self._admin.delete(f"/api/v1/namespaces/{name}"))
        return name

    def namespace_released(self, namespace: str) -> bool:
        return _released(_ok(self._admin.get(f"/api/v1/namespaces/{namespace}")).body)

    def _all(self, kind: str) -> str:
        if kind == SECRET:
            return f"/api/v1/namespaces/{self._namespace}/secrets"
        if kind == EXTERNAL:
            return external_secrets.path(self._namespace)
        return f"/apis/{PROVIDER_API}/namespaces/{self._namespace}/providerconfigs"


def _released(found: Object) -> bool:
    return names.ANNOTATION_RELEASED in (found["metadata"].get("annotations") or {})


def _ok(answer: Answer) -> Answer:
    assert answer.ok, answer.message
    return answer
