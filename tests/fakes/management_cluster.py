"""An in-memory management cluster: objects with uids, and a journal of effects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from function.contract import names
from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.broker.provider_config import ANNOTATION_CREDENTIAL
from reconciler.domain.broker.release import XRFacts
from reconciler.ports.broker import IssuedToken, LiveObject

Ref = tuple[str, str, str]


@dataclass
class InMemoryManagementCluster:
    """`ports.broker.ManagementCluster` with state; `journal` lists what had an effect."""

    policies: bool = True
    problem: str | None = None
    xr: XRFacts = field(
        default_factory=lambda: XRFacts(
            exists=True, terminating=False, composing_finalizer=True, paused=False
        )
    )
    objects: dict[Ref, LiveObject] = field(default_factory=dict)
    secrets: dict[tuple[str, str], IssuedToken] = field(default_factory=dict)
    provider_configs: dict[tuple[str, str], str] = field(default_factory=dict)
    records_in: dict[str, int] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)
    journal: list[str] = field(default_factory=list)

    async def hold_policies_bound(self) -> bool:
        return self.policies

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        return self.problem

    async def hold_namespace(self, namespace: str, *, records: int) -> None:
        if self.records_in.get(namespace) != records:
            self.records_in[namespace] = records
            self.journal.append(f"hold {records}")

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self.secrets

    async def create_token_secret(
        self, record: dict[str, Any], *, name: str, token: IssuedToken
    ) -> None:
        key = (record["metadata"]["namespace"], name)
        if key not in self.secrets:
            self.secrets[key] = token
            self.journal.append("create secret")

    async def delete_token_secret(self, namespace: str, name: str) -> None:
        if self.secrets.pop((namespace, name), None) is not None:
            self.journal.append("delete secret")

    async def provider_config_holder(self, manifest: dict[str, Any]) -> str | None:
        return self.provider_configs.get(_key(manifest))

    async def ensure_provider_config(self, manifest: dict[str, Any]) -> None:
        if _key(manifest) not in self.provider_configs:
            holder = manifest["metadata"]["annotations"][ANNOTATION_CREDENTIAL]
            self.provider_configs[_key(manifest)] = holder
            self.journal.append("create provider config")

    async def delete_provider_config(self, *, api_version: str, namespace: str, name: str) -> None:
        if self.provider_configs.pop((namespace, name), None) is not None:
            self.journal.append("delete provider config")

    async def get_xr_facts(self, xr: XRReference, namespace: str) -> XRFacts:
        return self.xr

    async def get_object(self, reference: SubstrateReference, namespace: str) -> LiveObject | None:
        return self.objects.get(_ref(reference))

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        live = self.objects[_ref(reference)]
        assert live.uid == uid
        self.objects[_ref(reference)] = LiveObject(
            uid=uid, terminating=live.terminating, released=True
        )
        self.journal.append("release")

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str
    ) -> None:
        live = self.objects.get(_ref(reference))
        if live is not None:
            assert live.uid == uid
            del self.objects[_ref(reference)]
            self.journal.append("delete substrate")

    async def write_status(self, record: dict[str, Any], status: dict[str, Any]) -> None:
        record["status"] = status
        self.journal.append("write status")

    async def remove_finalizer(self, record: dict[str, Any]) -> None:
        finalizers = record["metadata"].get("finalizers", [])
        if names.FINALIZER in finalizers:
            finalizers.remove(names.FINALIZER)
            self.journal.append("remove finalizer")

    async def record_event(
        self, record: dict[str, Any], *, reason: str, message: str, warning: bool = False
    ) -> None:
        if (reason, message) not in self.events:
            self.events.append((reason, message))
            self.journal.append(f"event {reason}")

    def compose(self, reference: SubstrateReference, *, uid: str = "substrate-1") -> None:
        """Make the substrate exist, as Crossplane would."""
        self.objects[_ref(reference)] = LiveObject(uid=uid, terminating=False, released=False)

    def drop(self, reference: SubstrateReference) -> None:
        """Make the substrate go, as Crossplane would once it is released."""
        live = self.objects.pop(_ref(reference))
        assert live.released
        self.journal.append("crossplane drops substrate")


def _ref(reference: SubstrateReference) -> Ref:
    return reference.api_version, reference.kind, reference.name


def _key(manifest: dict[str, Any]) -> tuple[str, str]:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]
