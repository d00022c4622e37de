"""Valid requests of many stages, for the other modules to spoil.

What a request of each stage looks like, and what must not go from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from function.contract import names
from tests.unit.function import given
from tests.unit.function.enrol_world import World, entry, server

Object = dict[str, Any]

NODE = {"id": "n", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
THEIRS = {"apiVersion": "s3.example.org/v1", "kind": "Bucket", "spec": {"big": 2**60, "no": None}}
NETWORK = {"apiVersion": "hcloud.example.org/v1alpha1", "kind": "Network", "spec": {"cidr": "x"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A valid request.

    Attributes:
        ours: Composed resources that the step may touch.
        kept: Observed resources that must be composed again whatever else is odd.
        carriers: Field paths, from a resource's name on, where a token may stand.
    """

    request: fnv1.RunFunctionRequest
    ours: frozenset[str]
    kept: frozenset[str] = frozenset()
    carriers: tuple[tuple[str, ...], ...] = ()


_DECLARED = frozenset({"record", "substrate"})
_CARRIERS = (
    ("substrate", "spec", "userData"),
    ("substrate", "spec", "parameters", "helmValues", "bootstrapToken"),
    ("substrate", "spec", "parameters", "providerSecret", "bootstrapToken"),
)
_ENROLLED = frozenset({"server", "record-server", "network"})


def _declare(
    resources: Mapping[str, Object], found: Mapping[str, Object | None] | None = None, **more: Any
) -> Base:
    theirs = {"theirs": {"resource": THEIRS}}
    request = given.request(
        given.xr(retry=1), resources, found, desired={"resources": theirs}, **more
    )
    kept = frozenset(resources) & {"substrate"}
    return Base(request=request, ours=_DECLARED, kept=kept, carriers=_CARRIERS)


def _born(**blueprint: Any) -> Base:
    status = given.status(accepted=given.declaration(**_strategy(blueprint)))
    found = given.required(blueprint=given.blueprint(**blueprint))
    found |= {"substrate": None, "token": given.secret()}
    return _declare({"record": given.record(status | _CONFIG)}, found)


_CONFIG = {"providerConfigRef": {"kind": "ProviderConfig", "name": "hetzner"}}


def _strategy(blueprint: Mapping[str, Any]) -> Object:
    strategy = blueprint.get("injectionStrategy")
    return {} if strategy is None else {"injectionStrategy": strategy}


def _failing() -> Base:
    said = given.condition("ProvisioningFailed", "True", "Quota", f"refused: # {given.TOKEN}")
    record = given.record(given.status(phase="Failed"))
    return _declare({"record": record, "substrate": given.substrate(said)})


def _ready() -> Base:
    record = given.record(given.status(node=NODE, phase="Ready"))
    return _declare(
        {"record": record, "substrate": given.substrate(given.READY)},
        given.required() | {"token": given.secret()},
    )


def _terminating() -> Base:
    record = given.record(given.status(), deletionTimestamp="2026-01-01T00:00:00Z")
    return _declare({"record": record, "substrate": given.substrate(given.READY)})


class Watched(World):
    """A world that remembers what it asked last."""

    last: fnv1.RunFunctionRequest

    def request(self, found: Mapping[str, Object | None] | None = None) -> fnv1.RunFunctionRequest:
        self.last = super().request(found)
        return self.last

    def base(self, *kept: str) -> Base:
        self.run()
        return Base(
            request=self.last,
            ours=_ENROLLED,
            kept=frozenset(kept),
            carriers=(("server", "spec", "forProvider", "userData"),),
        )


def _machine() -> Object:
    """A machine with something at every place that the step may write."""
    made = server(userData="", tag=[{"key": "step", "value": "one"}], texts=["step=one"])
    made["metadata"] = {"labels": {"step": "one"}, "annotations": {"step": "one"}}
    return made


def _world(**fields: Any) -> Watched:
    return Watched(
        entry(hold=["network"], **fields), server=_machine(), network=NETWORK, bucket=THEIRS
    )


def _enrolled() -> Watched:
    world = _world()
    world.enrolled()
    return world


def _shrunk() -> Watched:
    world = _enrolled()
    del world.given["server"], world.given["network"]
    return world


def _fresh_enrol() -> Base:
    return _world().base()


def _accepted_enrol() -> Base:
    world = _world()
    world.step()
    world.accept()
    return world.base()


def _older() -> Base:
    world = _world()
    world.objects["server"] = {**server(name="old"), "status": {"conditions": [given.READY]}}
    world.step()
    world.accept()
    return world.base("server")


def _draining() -> Base:
    world = _shrunk()
    world.step()
    return world.base("server", "network")


def _forgotten() -> Base:
    world = _enrolled()
    world.entries = [entry("other")]
    return world.base("server")


def _unmatched() -> Base:
    world = _enrolled()
    world.given["front-0"] = world.objects["front-0"] = _machine() | {"metadata": {"name": "old"}}
    world.entries += [entry("front0"), entry("pool-*")]
    return world.base("server", "network", "front-0")


def _secret(name: str, tags: str) -> Object:
    paths = {"bootstrapToken": "spec.forProvider.userData", "tags": tags}
    return entry(name, injectionStrategy="provider-secret", paths=paths)


def _many() -> Base:
    world = Watched(
        _secret("node-*", "spec.forProvider.tag[key,value]"),
        _secret("text-*", "spec.forProvider.texts[]"),
        **{f"{name}-0": _machine() for name in ("node", "text")},
    )
    world.step()
    for name in list(world.given):
        world.accept(name)
    base = world.base()
    places = tuple((name, "spec", "forProvider", "userData") for name in world.given)
    ours = frozenset({*world.given, *(f"record-{name}" for name in world.given)})
    return Base(request=base.request, ours=ours, carriers=places)


_MAKERS: dict[str, Callable[[], Base]] = {
    "declare-fresh": lambda: _declare({}),
    "declare-born": lambda: _born(
        providerConfig={"kind": "ProviderConfig", "fieldPath": "spec.providerConfigRef.name"}
    ),
    "declare-helm": lambda: _born(injectionStrategy="helm-values"),
    "declare-ready": _ready,
    "declare-failing": _failing,
    "declare-terminating": _terminating,
    "declare-preview": lambda: _declare({}, context={names.CONTEXT_PREVIEW: True}),
    "enrol-fresh": _fresh_enrol,
    "enrol-accepted": _accepted_enrol,
    "enrol-enrolled": lambda: _enrolled().base("server", "network"),
    "enrol-older": _older,
    "enrol-draining": _draining,
    "enrol-forgotten": _forgotten,
    "enrol-many": _many,
    "enrol-unmatched": _unmatched,
}

NAMES = tuple(_MAKERS)


def base(name: str) -> Base:
    """One valid request, made afresh."""
    return _MAKERS[name]()


def all_bases() -> Iterator[tuple[str, Base]]:
    return ((name, base(name)) for name in NAMES)
