"""An in-memory management cluster: objects with uids, and a journal of effects."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from function.contract import names
from function.contract.conditions import ObservedCondition
from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.aggregate.errors import GoingError, StaleAggregateError
from reconciler.domain.protection.external_secret import is_ours
from reconciler.domain.protection.provider_config import ANNOTATION_CREDENTIAL
from reconciler.domain.teardown.release import XRFacts
from reconciler.ports.cluster.health import Health
from reconciler.ports.cluster.namespaces import SOMEBODY_ELSE, Needed
from reconciler.ports.cluster.substrates import KindNotServedError, LiveObject, NotAllowedError
from reconciler.ports.store.aggregates import DrawnToken

Kind = tuple[str, str]
Ref = tuple[str, str, str]
Key = tuple[str, str]

GONE = XRFacts(exists=False, terminating=False, composing_finalizer=False, paused=False)


class RecordedEvent(NamedTuple):
    """One Kubernetes Event, on one subject."""

    subject: str
    reason: str
    message: str
    warning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRoles:
    """`ManagementCluster` of parts that somebody else brings."""

    checks: Any
    namespaces: Any
    credentials: Any
    provider_configs: Any
    token_secrets: Any
    substrates: Any
    records: Any


def every_role(whole: Any) -> ClusterRoles:
    """Return a cluster of which one object, or a stand-in for it, plays every role."""
    return ClusterRoles(**{each.name: whole for each in fields(ClusterRoles)})


@dataclass
class InMemoryManagementCluster:
    """`ManagementCluster` with state; `journal` lists what had an effect.

    Attributes:
        kinds: Which kinds are served and whether they are namespaced; None serves all.
        composites: Which kinds compose others.
        forbidden: What the broker may not do, as apiVersion, kind and verb.
        xr: What there is to say of an XR that `xrs` does not know.
        xrs: Uid and facts of XRs.
        records: Records by namespace and name, None for a deleted one; one that nobody
            put here is the very object that is handed in.
        secret_owners: Uid of the record that owns each Secret.
        credentials: The Secrets that carry credentials.
        external_secrets: Manifests, whoever made them.
        held: Kind, namespace and name of what carries the hold.
        releasing: Kind, namespace and name of what is marked as about to be let go.
    """

    unenforced: str = ""
    problem: str | None = None
    kinds: dict[Kind, bool] | None = None
    composites: set[Kind] = field(default_factory=set)
    forbidden: set[tuple[str, str, str]] = field(default_factory=set)
    xr: XRFacts = field(
        default_factory=lambda: XRFacts(
            exists=True, terminating=False, composing_finalizer=True, paused=False
        )
    )
    xrs: dict[Ref, tuple[str, XRFacts]] = field(default_factory=dict)
    records: dict[Key, dict[str, Any] | None] = field(default_factory=dict)
    objects: dict[Ref, LiveObject] = field(default_factory=dict)
    said: dict[Ref, dict[str, tuple[str, str, str]]] = field(default_factory=dict)
    looks: list[SubstrateReference] = field(default_factory=list)
    secrets: dict[Key, DrawnToken] = field(default_factory=dict)
    secret_owners: dict[Key, str] = field(default_factory=dict)
    provider_configs: dict[Key, str | None] = field(default_factory=dict)
    provider_config_secrets: dict[Key, str | None] = field(default_factory=dict)
    provider_config_specs: dict[Key, dict[str, Any]] = field(default_factory=dict)
    credentials: set[Key] = field(default_factory=set)
    external_secrets: dict[Key, dict[str, Any]] = field(default_factory=dict)
    held: set[tuple[str, str, str]] = field(default_factory=set)
    releasing: set[tuple[str, str, str]] = field(default_factory=set)
    released: set[tuple[str, str, str]] = field(default_factory=set)
    going: set[tuple[str, str, str]] = field(default_factory=set)
    records_in: dict[str, int] = field(default_factory=dict)
    events: list[RecordedEvent] = field(default_factory=list)
    journal: list[str] = field(default_factory=list)

    async def hold_policies_problem(self) -> str | None:
        return f"{self.unenforced} is missing" if self.unenforced else None

    async def definition_problem(self, reference: SubstrateReference) -> str | None:
        kind = f"{reference.kind} in {reference.api_version}"
        namespaced = self._namespaced(reference.api_version, reference.kind)
        if namespaced is None:
            return f"{kind} is not served here"
        return self.problem if namespaced else f"{kind} is cluster-scoped"

    async def missing_rights(
        self, *, api_version: str, kind: str, verbs: Sequence[str], namespace: str = ""
    ) -> tuple[str, ...]:
        if self._namespaced(api_version, kind) is None:
            return tuple(verbs)
        return tuple(verb for verb in verbs if (api_version, kind, verb) in self.forbidden)

    async def hold_namespace(
        self, namespace: str, *, records: int, needed: Needed | None = None
    ) -> None:
        if records:
            self._take("Namespace", "", namespace, held=self.records_in.get(namespace, 0) > 0)
            self.releasing.discard(("Namespace", "", namespace))
        elif not await self._given_up(("Namespace", "", namespace), needed):
            return
        if self.records_in.get(namespace, 0) != records:
            self.records_in[namespace] = records
            self.journal.append(f"hold {records}")

    async def token_secret_exists(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self.secrets

    async def create_token_secret(
        self, record: dict[str, Any], *, name: str, token: DrawnToken
    ) -> bool:
        metadata = record["metadata"]
        key = (metadata["namespace"], name)
        if key in self.secrets and self._live(record) is None:
            raise StaleAggregateError
        if key not in self.secrets or self.secret_owners.get(key) != metadata["uid"]:
            self.secrets[key] = token
            self.secret_owners[key] = metadata["uid"]
            self.journal.append("create secret")
        return self.secrets[key].plaintext.reveal() == token.plaintext.reveal()

    async def delete_token_secret(self, namespace: str, name: str, *, owner: str) -> None:
        if self.secret_owners.get((namespace, name)) == owner:
            del self.secret_owners[namespace, name]
            if self.secrets.pop((namespace, name), None) is not None:
                self.journal.append("delete secret")

    async def provider_config_holder(self, manifest: dict[str, Any]) -> str | None:
        if _key(manifest) not in self.provider_configs:
            return None
        return self.provider_configs[_key(manifest)] or SOMEBODY_ELSE

    async def ensure_provider_config(self, manifest: dict[str, Any]) -> None:
        served = self._namespaced(manifest["apiVersion"], manifest["kind"])
        self.releasing.discard(("ProviderConfig", *_key(manifest)))
        holder = manifest["metadata"]["annotations"][ANNOTATION_CREDENTIAL]
        there = _key(manifest) in self.provider_configs
        if not served or (there and self.provider_configs[_key(manifest)] != holder):
            return
        spec = manifest.get("spec") or {}
        self._take("ProviderConfig", *_key(manifest), held=False)
        if not there or self.provider_config_specs.get(_key(manifest)) != spec:
            self.provider_configs[_key(manifest)] = holder
            self.provider_config_specs[_key(manifest)] = copy.deepcopy(spec)
            secret = ((spec.get("credentials") or {}).get("secretRef") or {}).get("name")
            self.provider_config_secrets[_key(manifest)] = secret
            self.journal.append(f"{'change' if there else 'create'} provider config")

    async def delete_provider_config(
        self, *, api_version: str, namespace: str, name: str, needed: Needed | None = None
    ) -> None:
        served = self._namespaced(api_version, "ProviderConfig")
        if not await self._given_up(("ProviderConfig", namespace, name), needed):
            return
        if served and self.provider_configs.get((namespace, name)) is not None:
            del self.provider_configs[namespace, name]
            self.journal.append("delete provider config")

    async def provider_config_secret(self, manifest: dict[str, Any]) -> str | None:
        found = _key(manifest) in self.provider_configs
        name = self.provider_config_secrets.get(_key(manifest)) if found else None
        return name if name and names.is_cloud_credentials_secret(name) else None

    async def hold_credentials(
        self, namespace: str, name: str, *, held: bool, needed: Needed | None = None
    ) -> bool:
        present = (namespace, name) in self.credentials
        if held:
            self.releasing.discard(("Secret", namespace, name))
        elif not await self._given_up(("Secret", namespace, name), needed):
            return present
        if present:
            self._hold("Secret", namespace, name, held=held)
        external = self.external_secrets.get((namespace, name))
        if external is not None and not held and self._rendered(external):
            del self.external_secrets[namespace, name]
            self.held.discard(("ExternalSecret", namespace, name))
            self.journal.append("delete external secret")
        elif external is not None and (present or not held):
            self._hold("ExternalSecret", namespace, name, held=held)
        return present

    async def render_external_secret(self, manifest: dict[str, Any]) -> bool:
        if not self._namespaced(manifest["apiVersion"], manifest["kind"]):
            return False
        found = self.external_secrets.get(_key(manifest))
        if found is not None and not self._rendered(found):
            return False
        if found != manifest:
            self.external_secrets[_key(manifest)] = copy.deepcopy(manifest)
            self.journal.append("render external secret")
        self._hold("ExternalSecret", *_key(manifest), held=True)
        return True

    async def external_secret_taken(self, manifest: dict[str, Any]) -> bool:
        served = self._namespaced(manifest["apiVersion"], manifest["kind"])
        found = self.external_secrets.get(_key(manifest))
        return bool(served) and found is not None and not self._rendered(found)

    async def get_xr_facts(self, xr: XRReference, namespace: str) -> XRFacts:
        self._require(xr.api_version, xr.kind)
        uid, facts = self.xrs.get((xr.api_version, xr.kind, xr.name), (xr.uid, self.xr))
        return facts if xr.uid in ("", uid) else GONE

    async def get_object(self, reference: SubstrateReference, namespace: str) -> LiveObject | None:
        self._authorize(reference.api_version, reference.kind, "get")
        self._require(reference.api_version, reference.kind)
        return self.objects.get(_ref(reference))

    async def health(self, reference: SubstrateReference, namespace: str) -> Health | None:
        if "/" not in reference.api_version:
            return None
        self.looks.append(reference)
        live = await self.get_object(reference, namespace)
        if live is None:
            return None
        said = {
            kind: ObservedCondition(status=status, reason=reason, message=message)
            for kind, (status, reason, message) in self.said.get(_ref(reference), {}).items()
        }
        return Health(conditions=said, below=live.below)

    async def is_composite(self, reference: SubstrateReference) -> bool:
        served = self._namespaced(reference.api_version, reference.kind) is not None
        return served and (reference.api_version, reference.kind) in self.composites

    async def hold_below(
        self, reference: SubstrateReference, namespace: str, *, live: LiveObject, handle: str
    ) -> None:
        self._authorize(reference.api_version, reference.kind, "patch")
        now = self.objects.get(_ref(reference))
        if now is None or (now.uid, now.version) != (live.uid, live.version):
            raise StaleAggregateError
        self.objects[_ref(reference)] = _written(now, below_held=True)
        self.journal.append(f"hold below {reference.kind} {reference.name} for {handle}")

    async def release(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        self._authorize(reference.api_version, reference.kind, "patch")
        live = self.objects.get(_ref(reference))
        if live is None or live.uid != uid:
            raise StaleAggregateError
        if not live.released:
            self.objects[_ref(reference)] = _written(live, released=True)
            self.journal.append("release")

    async def let_go(self, reference: SubstrateReference, namespace: str, *, uid: str) -> None:
        self._authorize(reference.api_version, reference.kind, "patch")
        live = self.objects.get(_ref(reference))
        if live is not None and live.uid == uid and live.held:
            self.objects[_ref(reference)] = _written(live, held=False, below_held=False)
            self.journal.append(f"let go {reference.kind} {reference.name}")

    async def delete_object(
        self, reference: SubstrateReference, namespace: str, *, uid: str, foreground: bool = True
    ) -> None:
        self._authorize(reference.api_version, reference.kind, "delete")
        live = self.objects.get(_ref(reference))
        if live is not None and live.uid == uid:
            del self.objects[_ref(reference)]
            what = "substrate" if foreground else f"{reference.kind} {reference.name}"
            self.journal.append(f"delete {what}")

    async def write_status(self, record: dict[str, Any], status: dict[str, Any]) -> None:
        live = self._live(record)
        if live is None or _version(live) != _version(record):
            raise StaleAggregateError
        if live.get("status") != status:
            live["metadata"]["resourceVersion"] = str(int(_version(live)) + 1)
        live["status"] = status
        self.journal.append("write status")

    async def _given_up(self, what: tuple[str, str, str], needed: Needed | None) -> bool:
        """Mark, ask, and tell whether it is still marked."""
        if needed is None:
            return True
        self.releasing.add(what)
        if await needed() or what not in self.releasing:
            return False
        self.releasing.discard(what)
        return True

    async def record_stands(self, record: dict[str, Any]) -> bool:
        live = self._live(record)
        if live is None:
            return False
        return "deletionTimestamp" in record["metadata"] or (
            "deletionTimestamp" not in live["metadata"]
        )

    async def delete_loose_record(self, record: dict[str, Any]) -> None:
        live = self._live(record)
        owners = [] if live is None else live["metadata"].get("ownerReferences") or []
        if live is None or any(owner.get("controller") for owner in owners):
            return
        if "deletionTimestamp" not in live["metadata"]:
            live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            self.journal.append("delete record")

    async def remove_finalizer(self, record: dict[str, Any]) -> None:
        live = self._live(record)
        finalizers = [] if live is None else live["metadata"].get("finalizers", [])
        if names.FINALIZER in finalizers:
            finalizers.remove(names.FINALIZER)
            self.journal.append("remove finalizer")

    async def record_event(
        self, record: dict[str, Any], *, reason: str, message: str, warning: bool = False
    ) -> None:
        declared = ((record.get("spec") or {}).get("declaration") or {}).get("xr")
        subjects = [record["metadata"], *([declared] if declared else [])]
        found = [RecordedEvent(item["uid"], reason, message, warning) for item in subjects]
        fresh = [event for event in found if event[:3] not in {seen[:3] for seen in self.events}]
        if fresh:
            self.events += fresh
            self.journal.append(f"event {reason}")

    def compose(
        self,
        reference: SubstrateReference,
        *,
        uid: str = "substrate-1",
        controller: XRReference | None = None,
    ) -> None:
        """Make an object exist, as Crossplane would, with the hold that the function gives it."""
        self.objects[_ref(reference)] = LiveObject(
            uid=uid, terminating=False, released=False, held=True, controller=controller
        )

    def drop(self, reference: SubstrateReference) -> None:
        """Make the substrate go, as Crossplane would once it is released."""
        live = self.objects.pop(_ref(reference))
        assert live.released
        self.journal.append("crossplane drops substrate")

    def _rendered(self, found: dict[str, Any]) -> bool:
        return _rendered(found) and (found["kind"], *_key(found)) in self.held

    def _take(self, kind: str, namespace: str, name: str, *, held: bool) -> None:
        """Take what somebody prepared: not while it goes, and released no more."""
        if (kind, namespace, name) in self.going and not held:
            raise GoingError(kind, name)
        if (kind, namespace, name) in self.released:
            self.released.discard((kind, namespace, name))
            self.journal.append(f"no more released {kind}")

    def _hold(self, kind: str, namespace: str, name: str, *, held: bool) -> None:
        if held:
            self._take(kind, namespace, name, held=(kind, namespace, name) in self.held)
        if ((kind, namespace, name) in self.held) == held:
            return
        self.held ^= {(kind, namespace, name)}
        self.journal.append(f"{'hold' if held else 'let go'} {kind}")

    def _namespaced(self, api_version: str, kind: str) -> bool | None:
        return True if self.kinds is None else self.kinds.get((api_version, kind))

    def _require(self, api_version: str, kind: str) -> None:
        if self._namespaced(api_version, kind) is not None:
            return
        error = KindNotServedError()
        group = names.group_of(api_version)
        for version, served in self.kinds or {}:
            if (names.group_of(version), served) == (group, kind):
                error.elsewhere = version
        raise error

    def _authorize(self, api_version: str, kind: str, verb: str) -> None:
        if (api_version, kind, verb) in self.forbidden:
            message = f"cannot {verb} {kind}: it is forbidden to the reconciler"
            raise NotAllowedError(message)

    def _live(self, record: dict[str, Any]) -> dict[str, Any] | None:
        live = self.records.get(_key(record), record)
        same = live is not None and live["metadata"]["uid"] == record["metadata"]["uid"]
        return live if same else None


def _written(live: LiveObject, **changes: Any) -> LiveObject:
    return replace(live, version=str(int(live.version or "0") + 1), **changes)


def _rendered(found: dict[str, Any]) -> bool:
    return is_ours(found["metadata"].get("labels") or {})


def _ref(reference: SubstrateReference) -> Ref:
    return reference.api_version, reference.kind, reference.name


def _key(manifest: dict[str, Any]) -> Key:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def _version(record: dict[str, Any]) -> str:
    return str(record["metadata"].get("resourceVersion", "0"))
