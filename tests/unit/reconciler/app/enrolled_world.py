"""A broker on fakes whose records are those of `Enrol`: resources of somebody else's XR."""

from __future__ import annotations

from typing import Any

from function.contract import names
from function.contract.record import SubstrateReference, wire
from function.contract.strategy import Phase
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.ports.cluster.substrates import LiveObject
from tests.fakes.broker_repository import InMemoryBrokerRepository
from tests.unit.reconciler import samples
from tests.unit.reconciler.app.world import ALIVE, World

XR = samples.ENROLLED.xr


def record(name: str = "server", *, siblings: bool = True) -> dict[str, Any]:
    """Build a raw record as the function composes it for an enrolled resource."""
    raw = samples.record(name=f"pool-{name}", uid=f"record-{name}")
    (owner,) = raw["metadata"]["ownerReferences"]
    owner |= {"apiVersion": XR.api_version, "kind": XR.kind, "name": XR.name, "uid": XR.uid}
    declaration = samples.ENROLLED.model_copy(update={"resource": name})
    listed = [samples.SERVER, *([samples.NETWORK] if siblings else [])]
    raw["spec"] = {
        "declaration": wire(declaration),
        "substrate": [wire(reference) for reference in listed],
        "observed": {"exists": False},
    }
    return raw


class EnrolledWorld(World):
    """One enrolled resource, its sibling, and what function and Crossplane would do."""

    def network(self) -> LiveObject | None:
        """Return the sibling as it stands."""
        reference = samples.NETWORK
        return self.cluster.objects.get((reference.api_version, reference.kind, reference.name))

    async def unsettled(self) -> list[ProvisionedResource]:
        """Return the aggregates whose siblings are still looked after."""
        repository = InMemoryBrokerRepository(self.store, samples.CLUSTER)
        found = await repository.unsettled(samples.CLUSTER)
        return [await repository.get(each) for each in found]

    def compose_network(self) -> None:
        """Make the sibling, held and controlled by the XR, as the function would."""
        self.cluster.compose(samples.NETWORK, uid="network-1", controller=XR)

    def drain(self) -> None:
        """Do what the function does when its step stopped composing the resource."""
        self.raw["spec"]["drain"] = True
        self.cluster.xr = ALIVE

    def drop_record(self) -> None:
        """Do what Crossplane does once the function dropped the record."""
        assert self.raw["spec"].get("released") is True
        self.raw["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    def _reference(self) -> SubstrateReference | None:
        name = self.status.get("xrName")
        written = self.raw["spec"]["substrate"][0]
        if name is None and not written["name"]:
            return None
        written["name"] = written["name"] or name
        return SubstrateReference.model_validate(written)

    def _observe(self, reference: SubstrateReference) -> None:
        super()._observe(reference)
        if self.raw["spec"]["observed"]["exists"] and self.resource.generation:
            self.raw["spec"]["observed"]["bootstrapGeneration"] = self.resource.generation

    async def until_ready(self) -> None:
        await super().until_ready()
        assert names.FINALIZER in self.raw["metadata"]["finalizers"]
        assert self.resource.phase is Phase.READY
