"""What Crossplane, a provider or the collector decides by, on a real API server.

Whoever may patch a managed resource could make Crossplane drop it, or its provider lose it, under
a live node. On a held object and below it these fields are theirs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from tests.e2e.deploy.holding import hold_namespace, make_record, refused
from tests.e2e.deploy.identity import (
    BREAK_GLASS,
    COLLECTOR,
    CROSSPLANE,
    MASTERS,
    NAMESPACE_CONTROLLER,
    RECONCILER,
    Caller,
    wait_until,
)
from tests.e2e.deploy.place import (
    EXTERNAL_NAME,
    MACHINE,
    RESOURCE_NAME,
    SETTLED_TIMEOUT_S,
    SUBSTRATE,
    Kind,
    Object,
    Place,
    definition,
    held,
    manifest,
)

pytestmark = pytest.mark.e2e

PROVIDER: Final = "system:serviceaccount:crossplane-system:provider-nop"
PROVIDERS_FINALIZER: Final = "finalizer.managedresource.crossplane.io"
COMPOSITES_FINALIZER: Final = "composite.apiextensions.crossplane.io"

MACHINES_SPEC: Final[Object] = {
    "forProvider": {"region": "nbg1"},
    "managementPolicies": ["*"],
    "providerConfigRef": {"kind": "ProviderConfig", "name": "hetzner"},
}
COMPOSITES_SPEC: Final[Object] = {
    "parameters": {"region": "nbg1"},
    "crossplane": {
        "compositionRef": {"name": "generic-vm"},
        "compositionRevisionRef": {"name": "generic-vm-1"},
        "resourceRefs": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "one"}],
    },
}

ON_ANY: Final[dict[str, Object]] = {
    "resource-name": {"metadata": {"annotations": {RESOURCE_NAME: "another"}}},
    "resource-name-off": {"metadata": {"annotations": {RESOURCE_NAME: None}}},
    "composite": {"metadata": {"labels": {names.CROSSPLANE_COMPOSITE: "web-2"}}},
    "composite-off": {"metadata": {"labels": {names.CROSSPLANE_COMPOSITE: None}}},
    "owners-off": {"metadata": {"ownerReferences": None}},
    "orphaning": {"metadata": {"finalizers": ["orphan", PROVIDERS_FINALIZER]}},
    "finalizer-off": {"metadata": {"finalizers": None}},
}
ON_A_MACHINE: Final[dict[str, Object]] = {
    "external-name": {"metadata": {"annotations": {EXTERNAL_NAME: "vm-2"}}},
    "external-name-off": {"metadata": {"annotations": {EXTERNAL_NAME: None}}},
    "observe-only": {"spec": {"managementPolicies": ["Observe"]}},
    "policies-off": {"spec": {"managementPolicies": None}},
    "deletion-policy": {"spec": {"deletionPolicy": "Orphan"}},
    "provider-config": {"spec": {"providerConfigRef": {"name": "another"}}},
    "for-provider": {"spec": {"forProvider": {"region": "fsn1"}}},
    "spec-off": {"spec": None},
}
ON_A_COMPOSITE: Final[dict[str, Object]] = {
    "composition": {"spec": {"crossplane": {"compositionRef": {"name": "another"}}}},
    "revision": {"spec": {"crossplane": {"compositionRevisionRef": {"name": "generic-vm-9"}}}},
    "update-policy": {"spec": {"crossplane": {"compositionUpdatePolicy": "Manual"}}},
    "selector": {"spec": {"crossplane": {"compositionSelector": {"matchLabels": {"a": "b"}}}}},
    "references-off": {"spec": {"crossplane": {"resourceRefs": None}}},
    "crossplane-off": {"spec": {"crossplane": None}},
    "parameters": {"spec": {"parameters": {"region": "fsn1"}}},
}


def _make(place: Place, kind: Kind, spec: Object, **metadata: Any) -> str:
    """Create an object as Crossplane composes it, and return its path."""
    finalizer = COMPOSITES_FINALIZER if "crossplane" in spec else PROVIDERS_FINALIZER
    body = manifest(
        kind,
        f"pr-{uuid4()}",
        finalizers=[finalizer],
        annotations={RESOURCE_NAME: "machine", EXTERNAL_NAME: "vm-1"},
        **metadata,
    )
    answer = place.admin.create(place.all(kind), {**body, "spec": spec})
    assert answer.ok, answer.message
    return place.one(kind, body["metadata"]["name"])


def _held(place: Place, kind: Kind, spec: Object) -> str:
    labels = held(**{names.CROSSPLANE_COMPOSITE: "web-1"})
    return _make(place, kind, spec, labels=labels, ownerReferences=place.owner(_outer(place)))


def _outer(place: Place) -> str:
    """Return the path of the composite above, which it creates the first time."""
    path = place.one(SUBSTRATE, "web-1")
    return place.make(SUBSTRATE, "web-1") if place.gone(path) else path


def _below(place: Place, kind: Kind, spec: Object) -> str:
    """Create what stands below a held composite."""
    owner = place.owner(_held(place, SUBSTRATE, COMPOSITES_SPEC))
    labels = {names.CROSSPLANE_COMPOSITE: "web-1"}
    return _make(place, kind, spec, labels=labels, ownerReferences=owner)


Maker = Callable[[Place, Kind, Object], str]
SUBJECTS: Final[Mapping[str, tuple[Maker, Kind, Object, Mapping[str, Object]]]] = {
    "substrate": (_held, SUBSTRATE, COMPOSITES_SPEC, ON_ANY | ON_A_COMPOSITE),
    "enrolled-machine": (_held, MACHINE, MACHINES_SPEC, ON_ANY | ON_A_MACHINE),
    "machine-below": (_below, MACHINE, MACHINES_SPEC, ON_ANY | ON_A_MACHINE),
    "composite-below": (_below, SUBSTRATE, COMPOSITES_SPEC, ON_ANY | ON_A_COMPOSITE),
}
CHANGES: Final = [
    pytest.param(subject, change, id=f"{subject}-{name}")
    for subject, (_, _, _, changes) in SUBJECTS.items()
    for name, change in changes.items()
]


@pytest.fixture
def made(place: Place) -> Callable[[str], str]:
    def make(subject: str) -> str:
        maker, kind, spec, _ = SUBJECTS[subject]
        return maker(place, kind, spec)

    return make


@pytest.mark.parametrize(("subject", "change"), CHANGES)
def test_it_is_not_changed_by_who_may_patch(
    place: Place, made: Callable[[str], str], subject: str, change: Object
) -> None:
    path = made(subject)
    before = place.admin.get(path).body

    answer = place.admin.as_user("jane", MASTERS).patch(path, change)

    assert refused(answer, path.rpartition("/")[2]), answer.message
    assert place.admin.get(path).body == before


@pytest.mark.parametrize(("subject", "change"), CHANGES)
def test_it_is_changed_by_crossplane_and_by_break_glass(
    place: Place, made: Callable[[str], str], subject: str, change: Object
) -> None:
    for caller in (
        place.admin.as_user(CROSSPLANE, MASTERS),
        place.admin.as_user("jane", MASTERS, BREAK_GLASS),
    ):
        path = made(subject)

        answer = caller.patch(f"{path}?dryRun=All", change)

        assert answer.ok, answer.message


@pytest.mark.parametrize("subject", ["enrolled-machine", "machine-below"])
@pytest.mark.parametrize(
    "change", [*ON_A_MACHINE.values(), ON_ANY["finalizer-off"]], ids=[*ON_A_MACHINE, "finalizer"]
)
def test_what_is_a_providers_is_changed_by_it(
    place: Place, made: Callable[[str], str], subject: str, change: Object
) -> None:
    path = made(subject)

    answer = place.admin.as_user(PROVIDER, MASTERS).patch(f"{path}?dryRun=All", change)

    assert answer.ok, answer.message


@pytest.mark.parametrize("subject", ["enrolled-machine", "machine-below"])
@pytest.mark.parametrize("name", ["resource-name", "composite", "owners-off", "orphaning"])
def test_what_is_crossplanes_is_not_changed_by_a_provider(
    place: Place, made: Callable[[str], str], subject: str, name: str
) -> None:
    path = made(subject)

    answer = place.admin.as_user(PROVIDER, MASTERS).patch(path, ON_ANY[name])

    assert refused(answer, path.rpartition("/")[2]), answer.message


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_owner_is_added(place: Place, made: Callable[[str], str], subject: str) -> None:
    """With a second owner the collector would leave it when the first is gone."""
    path = made(subject)
    owners = place.admin.get(path).body["metadata"]["ownerReferences"]
    further = {**place.owner(place.make(SUBSTRATE))[0], "controller": False}

    answer = place.admin.patch(path, {"metadata": {"ownerReferences": [*owners, further]}})

    assert refused(answer, "ownerReferences"), answer.message


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_collector_takes_owners_off(
    place: Place, made: Callable[[str], str], subject: str
) -> None:
    path = made(subject)

    answer = place.admin.as_user(COLLECTOR, MASTERS).patch(path, ON_ANY["owners-off"])

    assert answer.ok, answer.message


@pytest.mark.parametrize("subject", SUBJECTS)
def test_people_pause_label_and_annotate_it(
    place: Place, made: Callable[[str], str], subject: str
) -> None:
    path = made(subject)
    mine = {"crossplane.io/paused": "true", "crossplane.io/external-create-pending": None, "a": "b"}

    answer = place.admin.as_user("jane", MASTERS).patch(
        path, {"metadata": {"annotations": mine, "labels": {"team": "checkout"}}}
    )

    assert answer.ok, answer.message


def test_what_is_no_kind_of_crossplanes_is_edited(place: Place) -> None:
    """A composed Deployment is scaled, a claim is bound: only their being there is held."""
    path = _below(place, MACHINE, {"replicas": 1})

    answer = place.admin.as_user("jane", MASTERS).patch(path, {"spec": {"replicas": 3}})

    assert answer.ok, answer.message


@pytest.mark.parametrize("mark", ["labels", "annotations"])
@pytest.mark.parametrize("value", [None, "another"])
@pytest.mark.parametrize("user", ["jane", PROVIDER])
def test_our_marks_on_a_held_object_are_not_changed(
    place: Place, mark: str, value: str | None, user: str
) -> None:
    own = f"{names.GROUP}/record"
    path = place.substrate(annotations={own: "web-1-0123456789"})

    answer = place.admin.as_user(user, MASTERS).patch(path, {"metadata": {mark: {own: value}}})

    assert refused(answer, f"metadata.{mark}", "reconciler"), answer.message


@pytest.mark.parametrize("mark", ["labels", "annotations"])
def test_nor_is_one_added(place: Place, mark: str) -> None:
    path = place.substrate()

    answer = place.admin.patch(path, {"metadata": {mark: {f"{names.GROUP}/other": "x"}}})

    assert refused(answer, f"metadata.{mark}"), answer.message


@pytest.mark.parametrize("user", [CROSSPLANE, RECONCILER])
def test_our_marks_are_changed_by_crossplane_and_the_reconciler(place: Place, user: str) -> None:
    path = place.substrate()
    marks = {f"{names.GROUP}/bootstrap-generation": "2"}

    answer = place.admin.as_user(user, MASTERS).patch(path, {"metadata": {"annotations": marks}})

    assert answer.ok, answer.message


@pytest.mark.parametrize(
    "change",
    [
        ON_ANY["resource-name"],
        ON_ANY["resource-name-off"],
        ON_ANY["composite"],
        ON_ANY["composite-off"],
        ON_ANY["owners-off"],
    ],
)
@pytest.mark.parametrize("user", ["jane", PROVIDER])
def test_a_record_stays_what_crossplane_composed(place: Place, user: str, change: Object) -> None:
    path = _record(place)

    answer = place.admin.as_user(user, MASTERS).patch(path, change)

    assert refused(answer, "ProvisioningRecord", "Crossplane"), answer.message


@pytest.mark.parametrize("user", [CROSSPLANE, COLLECTOR])
def test_a_record_is_adopted_and_orphaned(place: Place, user: str) -> None:
    path = _record(place)

    answer = place.admin.as_user(user, MASTERS).patch(path, ON_ANY["owners-off"])

    assert answer.ok, answer.message


def _record(place: Place) -> str:
    return make_record(
        place,
        labels={names.CROSSPLANE_COMPOSITE: "web-1"},
        annotations={RESOURCE_NAME: "record"},
        ownerReferences=place.owner(_outer(place)),
    )


@pytest.mark.parametrize("user", ["jane", CROSSPLANE])
def test_a_held_namespace_is_not_finalized_by_hand(place: Place, user: str) -> None:
    """The usual cure for a namespace that hangs would leave what is in it out of reach."""
    hold_namespace(place, records="1")

    answer = _finalize(place, place.admin.as_user(user, MASTERS))

    assert refused(answer, "spec.finalizers", "namespace controller"), answer.message


def test_a_held_namespace_is_finalized_by_its_controller(place: Place) -> None:
    hold_namespace(place, records="1")

    controller = place.admin.as_user(NAMESPACE_CONTROLLER, MASTERS)
    answer = _finalize(place, controller, "?dryRun=All")

    assert answer.ok, answer.message


def _finalize(place: Place, caller: Caller, query: str = "") -> Any:
    body = place.admin.get(place.path).body
    body["spec"]["finalizers"] = []
    return caller.request("PUT", f"{place.path}/finalize{query}", body)


PROVIDER_CONFIG: Final = ("clouds.plexsphere.test", "ProviderConfig", "providerconfigs")


@pytest.fixture
def provider_config(deployed: ControlPlane, place: Place) -> Iterator[str]:
    """Create a held ProviderConfig and return its path."""
    deployed.apply(definition(PROVIDER_CONFIG))
    body = manifest(PROVIDER_CONFIG, "hetzner", labels=held())
    spec = {"credentials": {"source": "Secret", "secretRef": {"name": "one"}}}
    wait_until(
        lambda: place.admin.create(place.all(PROVIDER_CONFIG), {**body, "spec": spec}).ok,
        timeout_s=SETTLED_TIMEOUT_S,
        what="the kind is served",
    )
    path = place.one(PROVIDER_CONFIG, "hetzner")
    yield path
    assert place.admin.as_user(RECONCILER, MASTERS).delete(path).ok


@pytest.mark.parametrize("user", ["jane", PROVIDER])
def test_a_held_provider_config_is_not_pointed_at_another_account(
    place: Place, provider_config: str, user: str
) -> None:
    other = {"spec": {"credentials": {"secretRef": {"name": "another"}}}}

    answer = place.admin.as_user(user, MASTERS).patch(provider_config, other)

    assert refused(answer, "ProviderConfig hetzner", "change the Cloud"), answer.message


def test_a_held_provider_config_is_used_and_counted(place: Place, provider_config: str) -> None:
    """A provider's own marks on it."""
    used = {"metadata": {"finalizers": ["in-use.crossplane.io"]}, "status": {"users": 1}}

    for change in (used, {"metadata": {"finalizers": None}}):
        answer = place.admin.as_user(PROVIDER, MASTERS).patch(provider_config, change)

        assert answer.ok, answer.message
