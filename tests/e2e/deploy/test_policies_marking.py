"""Who may put the hold label on an object, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dev.controlplane import ControlPlane
from dev.objects import documents
from function.contract import names
from tests.e2e.deploy.holding import CRDS, DEPLOY, refused
from tests.e2e.deploy.identity import BREAK_GLASS, CROSSPLANE, RECONCILER, Caller, wait_until
from tests.e2e.deploy.place import CONFIG_MAP, SECRET, Object, Place, held, manifest
from tests.e2e.deploy.rights import AGGREGATED_TIMEOUT_S, bind, may

pytestmark = pytest.mark.e2e

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
PROJECTS = f"{names.GROUP}/projects"
LABEL_ON: dict[str, Any] = {"metadata": {"labels": held()}}


def _everywhere(place: Place, user: str, role: str) -> str:
    """Give a user a role in the whole cluster and return the binding's path."""
    reference = {"apiGroup": "rbac.authorization.k8s.io"}
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{place.name}-{role}"},
        "roleRef": {**reference, "kind": "ClusterRole", "name": role},
        "subjects": [{**reference, "kind": "User", "name": user}],
    }
    answer = place.admin.create(BINDINGS, body)
    assert answer.ok, answer.message
    wait_until(
        lambda: may(place.admin, user, "update", PROJECTS),
        timeout_s=AGGREGATED_TIMEOUT_S,
        what=f"{user} may update Projects",
    )
    return f"{BINDINGS}/{place.name}-{role}"


@pytest.fixture
def tenant(place: Place) -> Caller:
    """Somebody who may do in a namespace what its admins may."""
    return place.admin.as_user(bind(place, "admin"), "system:authenticated")


@pytest.fixture
def platform(place: Place) -> Iterator[Caller]:
    """Somebody who also publishes, without being an administrator of the cluster."""
    user = bind(place, "admin")
    binding = _everywhere(place, user, "provisioning-broker-platform")
    yield place.admin.as_user(user, "system:authenticated")
    place.admin.delete(binding)


@pytest.fixture
def installer(place: Place) -> Iterator[Caller]:
    """Who runs `kubectl apply -k deploy`: everything by RBAC, not by being a master."""
    user = f"installer-of-{place.name}"
    binding = _everywhere(place, user, "cluster-admin")
    yield place.admin.as_user(user, "system:authenticated")
    place.admin.delete(binding)


def test_tenant_creates_nothing_held(place: Place, tenant: Caller) -> None:
    body = manifest(CONFIG_MAP, "locked", labels=held())

    answer = tenant.create(place.all(CONFIG_MAP), body)

    assert refused(answer, "cannot create ConfigMap locked", names.LABEL_HOLD, "update Projects")


@pytest.mark.parametrize("labels", [{}, {names.LABEL_HOLD: "false"}], ids=["absent", "false"])
def test_tenant_makes_nothing_held(place: Place, tenant: Caller, labels: dict[str, str]) -> None:
    foreign = place.make(CONFIG_MAP, labels=labels)

    answer = tenant.patch(foreign, LABEL_ON)

    assert refused(answer, "cannot update ConfigMap", names.LABEL_HOLD, "update Projects")
    assert place.admin.delete(foreign).ok


def test_tenant_changes_what_is_held_already(place: Place, tenant: Caller) -> None:
    credentials = place.make(CONFIG_MAP, labels=held())

    answer = tenant.patch(credentials, {"data": {"a": "b"}, **LABEL_ON})

    assert answer.ok, answer.message


def test_tenant_sets_the_label_to_anything_else(place: Place, tenant: Caller) -> None:
    body = manifest(CONFIG_MAP, "free", labels={names.LABEL_HOLD: "false"})

    answer = tenant.create(place.all(CONFIG_MAP), body)

    assert answer.ok, answer.message


def test_who_updates_projects_holds_objects(place: Place, platform: Caller) -> None:
    free = place.make(CONFIG_MAP)

    created = platform.create(
        place.all(CONFIG_MAP), manifest(CONFIG_MAP, "credentials", labels=held())
    )
    updated = platform.patch(free, LABEL_ON)

    assert created.ok, created.message
    assert updated.ok, updated.message
    assert refused(platform.delete(free))


def test_crossplane_composes_held_objects(place: Place) -> None:
    caller = place.admin.as_user(CROSSPLANE)

    answer = caller.create(place.all(SECRET), manifest(SECRET, "substrate", labels=held()))

    assert not may(place.admin, CROSSPLANE, "update", PROJECTS)
    assert answer.ok, answer.message
    assert refused(place.admin.delete(place.one(SECRET, "substrate")))


def test_the_reconciler_holds_what_it_did_not_make(place: Place) -> None:
    answer = place.admin.as_user(RECONCILER).patch(place.path, LABEL_ON)

    assert not may(place.admin, RECONCILER, "update", PROJECTS)
    assert answer.ok, answer.message
    assert refused(place.admin.delete(place.path))


def test_crossplane_puts_the_label_on_what_it_composed_without(place: Place) -> None:
    secret = place.make(SECRET)

    answer = place.admin.as_user(CROSSPLANE).patch(secret, LABEL_ON)

    assert answer.ok, answer.message


def test_break_glass_puts_the_label_on(place: Place) -> None:
    user = bind(place, "admin")
    free = place.make(CONFIG_MAP)

    answer = place.admin.as_user(user, BREAK_GLASS).patch(free, LABEL_ON)

    assert answer.ok, answer.message


def _held_by_deploy() -> list[Object]:
    found = documents([DEPLOY / "namespace.yaml", DEPLOY / "crds"])
    return [item for item in found if item["metadata"]["labels"].get(names.LABEL_HOLD) == "true"]


def _anew(item: Object, word: str) -> Object:
    """Return a manifest as one that the cluster has not got."""
    if item["kind"] == "Namespace":
        return {**item, "metadata": {**item["metadata"], "name": f"{word}-anew"}}
    group = f"{word}.plexsphere.test"
    name = f"{item['spec']['names']['plural']}.{group}"
    return {
        **item,
        "metadata": {**item["metadata"], "name": name},
        "spec": {**item["spec"], "group": group},
    }


def test_installer_applies_what_is_held_first_and_again(
    deployed: ControlPlane, place: Place, installer: Caller
) -> None:
    for item in _held_by_deploy():
        all_of_it = "/api/v1/namespaces" if item["kind"] == "Namespace" else CRDS
        for body in (item, _anew(item, place.name)):
            answer = installer.request(
                "PATCH",
                f"{all_of_it}/{body['metadata']['name']}?fieldManager=kubectl&force=true&dryRun=All",
                body,
                content_type="application/apply-patch+yaml",
            )

            assert answer.ok, answer.message
