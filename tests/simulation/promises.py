"""The nine promises of `docs/promises.md`, as checks of a world.

What must hold after every step, what must hold at rest, what must be left at the end. Each
names the promise by its number. The sixth is checked up to the outbox, the delivery from
there on is the relay's; the eighth needs a world of its own (`test_lifecycles`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from function.contract import names
from function.contract.strategy import BootstrapState, Phase
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events.lifecycle import EventType
from reconciler.ports.cluster.substrates import LiveObject
from tests.fakes.memory import TokenRow
from tests.simulation.ground import Ground


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that was broken."""

    promise: int
    text: str

    def __str__(self) -> str:
        return f"promise {self.promise}: {self.text}"


_OF_NODES: Final = frozenset({"issue", "create_token_secret", "extend", "update"})
_OF_ROWS: Final = frozenset({"create", "update", "record_deletion_intent"})

_TOLD: Final = {
    Phase.READY: EventType.READY,
    Phase.FAILED: EventType.FAILED,
    Phase.DELETED: EventType.DELETED,
}


class Promises:
    """Watches one world; keeps the first breach."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.breach: Breach | None = None
        self._phases: dict[ids.ProvisionedResourceID, Phase] = {}

    def broken(self, promise: int, text: str) -> None:
        """Note a breach; the first counts."""
        if self.breach is None:
            self.breach = Breach(promise=promise, text=text)
            self._ground.note("BREACH", str(self.breach))

    def step(self, effect: str | None = None) -> None:
        """Check what must hold at every moment, as far as an effect may have changed it.

        Args:
            effect: What the broker did; None: something else happened.
        """
        if effect is None or effect in _OF_NODES:
            self._enrolled_once()
        if effect is not None and effect not in _OF_ROWS:
            return
        for resource in self._ground.store.resources.values():
            self._told(resource)
            if resource.phase is Phase.DELETED:
                self._is_gone(resource)
        self._owned()

    def deleting(self, live: LiveObject, name: str, by: str) -> None:
        """Check that a substrate may begin to go."""
        if by == "break-glass":
            return
        resource = self._resource(name)
        if resource is None:
            self.broken(2, f"{by} deletes substrate {name}, which nobody protects")
            return
        node = any(self._ground.store.live_nodes(resource.id))
        if node and resource.force_released_at is None:
            self.broken(3, f"{by} deletes {name} while its node is registered")
        if resource.deletion_requested_at is None and resource.recreating_since is None:
            self.broken(3, f"{by} deletes {name}, {resource.phase}, and nobody asked for it")

    def at_rest(self) -> None:
        """Check what must hold once all is settled."""
        for machine in self._ground.machines():
            records = [
                raw
                for raw in self._ground.cluster.records.values()
                if raw is not None and (raw.get("status") or {}).get("xrName") == machine.name
            ]
            if not records:
                self.broken(2, f"substrate {machine.name} has no record")

    def at_the_end(self) -> None:
        """Check that nothing is left of anything."""
        ground, store = self._ground, self._ground.store
        left = {
            "records": [key for key, raw in ground.cluster.records.items() if raw is not None],
            "substrates": [machine.name for machine in ground.machines()],
            "machines": [row.name for row in ground.rows.values() if row.machines],
            "live nodes": [n.mesh_ip for n in store.nodes.values() if n.deregistered_at is None],
            "live tokens": [t.generation for t in store.tokens.values() if not t.spent],
            "token Secrets": list(ground.cluster.secrets),
            "ProviderConfigs": list(ground.cluster.provider_configs),
            "holds": sorted(str(item) for item in ground.cluster.held),
            "remembered holds": list(store.holds),
            "records counted": [n for n in ground.cluster.records_in.values() if n],
        }
        for what, found in left.items():
            if found:
                promise = 4 if what in ("machines", "substrates") else 9
                self.broken(promise, f"{what} left at the end: {found}")
        self._ordered()

    def secrets(self, *more: str) -> None:
        """Look for plaintexts where none belong."""
        ground, store = self._ground, self._ground.store
        shown = [
            json.dumps([change.raw for change in ground.cluster.log]),
            json.dumps(
                [event.payload for rows in store.events.values() for event in rows]
                + [event.payload for rows in store.node_events.values() for event in rows]
            ),
            repr(store.audit) + repr(store.denials) + repr(ground.cluster.events),
            "\n".join(ground.trace),
            *more,
        ]
        for text in shown:
            if any(plaintext in text for plaintext in ground.ids.minted):
                self.broken(7, f"a token's text is in {text[:60]!r}…")

    def _enrolled_once(self) -> None:
        store, now = self._ground.store, self._ground.clock.now()
        tokens = [node.token_id for node in store.nodes.values()]
        if len(tokens) != len(set(tokens)):
            self.broken(1, "a token enrolled more than one node")
        live = [n.resource_id for n in store.nodes.values() if n.deregistered_at is None]
        if len(live) != len(set(live)):
            self.broken(1, "a resource has more than one live node")
        out = [
            row.resource_id
            for row in store.tokens.values()
            if row.state(now) is BootstrapState.ISSUED and self._in_use(row)
        ]
        if len(out) != len(set(out)):
            self.broken(1, "a resource has more than one live token in use")

    def _in_use(self, token: TokenRow) -> bool:
        """Tell whether a machine carries it, or will: the one that the status names is given."""
        name = names.xr_name(token.resource_id)
        generation = token.generation
        if any(r.name == name and r.generation == generation for r in self._ground.rows.values()):
            return self._ground.cluster.substrate(name) is not None
        for raw in self._ground.cluster.records.values():
            status = {} if raw is None else raw.get("status") or {}
            bootstrap = status.get("bootstrap") or {}
            if status.get("xrName") == name and bootstrap.get("generation") == generation:
                return bootstrap.get("secretRef") is not None
        return False

    def _told(self, resource: ProvisionedResource) -> None:
        claimed = self._ground.store.claimed
        if self._phases.get(resource.id) is resource.phase:
            return
        self._phases[resource.id] = resource.phase
        self._ground.note("phase", f"{resource.key.name} {resource.phase}")
        attempt = resource.generation + resource.retries
        told = _TOLD.get(resource.phase)
        if told is EventType.DELETED:
            attempt = -1
            found = any(key[:2] == (resource.id, told.value) for key in claimed)
        else:
            found = told is None or (resource.id, told.value, attempt) in claimed
        if not found:
            self.broken(6, f"{resource.xr_name} is {resource.phase} and no event tells it")
        asked = any(key[:2] == (resource.id, EventType.DELETING.value) for key in claimed)
        if resource.deletion_requested_at is not None and not asked:
            self.broken(6, f"{resource.xr_name} is going and no event tells it")

    def _is_gone(self, resource: ProvisionedResource) -> None:
        name = resource.xr_name
        if self._ground.cluster.substrate(name) is not None:
            self.broken(4, f"{name} is Deleted and its substrate is there")
        rows = self._ground.rows.values()
        if any(row.name == name and row.machines for row in rows):
            self.broken(4, f"{name} is Deleted and its machine is there")

    def _owned(self) -> None:
        for machine in self._ground.machines():
            resource = self._resource(machine.name)
            if resource is None or resource.phase is Phase.DELETED:
                self.broken(2, f"substrate {machine.name} belongs to no aggregate")

    def _ordered(self) -> None:
        store = self._ground.store
        for resource in store.resources.values():
            events = store.events.get(resource.id, [])
            numbers = [event.aggregate_sequence for event in events]
            if numbers != list(range(1, len(events) + 1)):
                self.broken(6, f"{resource.xr_name} has events {numbers}")
            types = [event.type for event in events]
            if types[0] != EventType.REQUESTED or types[-1] != EventType.DELETED:
                self.broken(6, f"{resource.xr_name} told {types}")
            if any(types.count(one) != 1 for one in _ONCE):
                self.broken(6, f"{resource.xr_name} told {types}")
        told = [
            event.payload["EventID"]
            for rows in (*store.events.values(), *store.node_events.values())
            for event in rows
        ]
        if len(told) != len(set(told)):
            self.broken(6, "two events have one id")

    def _resource(self, name: str) -> ProvisionedResource | None:
        for resource in self._ground.store.resources.values():
            if resource.xr_name == name:
                return resource
        return None


_ONCE: Final = (EventType.REQUESTED, EventType.DELETING, EventType.DELETED)
