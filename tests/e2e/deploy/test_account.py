"""What the policy on the reconciler's account lets pass and what not, on a real API server.

Each rule of `deploy/policies/account.yaml`, with everything that RBAC would stop allowed,
so that the policy alone decides.
"""

from __future__ import annotations

import copy
from typing import Any, Final
from uuid import uuid4

import pytest

from dev.controlplane import ControlPlane
from function.contract import names
from function.contract.catalog.published import SecretStoreRef, VaultPath
from reconciler.domain.protection import external_secret
from tests.e2e.deploy import external_secrets, holding
from tests.e2e.deploy.identity import BREAK_GLASS, MASTERS, RECONCILER, Answer, Caller, wait_until
from tests.e2e.deploy.place import (
    CONFIG_MAP,
    RECORD,
    SECRET,
    SETTLED_TIMEOUT_S,
    Object,
    Place,
    definition,
    held,
    manifest,
)

pytestmark = pytest.mark.e2e

CREDENTIALS: Final = "cloud-credentials-0123456789abcdef"
CONFIG: Final = ("clouds.plexsphere.test", "ProviderConfig", "providerconfigs")
MARK: Final = {"metadata": {"labels": held(), "annotations": {names.ANNOTATION_RELEASING: "true"}}}
VAULT: Final = VaultPath(mount="kv", path="acme/hetzner")
STORE: Final = SecretStoreRef(kind="ClusterSecretStore", name="openbao")


@pytest.fixture(scope="module")
def served(deployed: ControlPlane) -> Caller:
    """Kinds of others, as far as the policy looks into them."""
    deployed.apply(external_secrets.definition(), definition(CONFIG))
    admin = Caller(deployed.kubeconfig)
    for path in (f"{CONFIG[0]}/v1alpha1/{CONFIG[2]}", "external-secrets.io/v1/externalsecrets"):
        wait_until(
            lambda path=path: admin.get(f"/apis/{path}").ok,  # type: ignore[misc]  # mypy cannot type a default in a lambda
            timeout_s=SETTLED_TIMEOUT_S,
            what=f"{path} is served",
        )
    return admin


@pytest.fixture
def account(place: Place) -> Caller:
    """The reconciler, allowed everything by RBAC."""
    return place.admin.as_user(RECONCILER, MASTERS)


def refused(answer: Answer, *words: str) -> bool:
    ours = answer.status == 403 and "plexsphere-account" in answer.message
    return ours and all(word in answer.message for word in words)


def secret(name: str, kind: str = names.TOKEN_SECRET_TYPE) -> Object:
    return {**manifest(SECRET, name), "type": kind, "stringData": {"token": "sample"}}


def test_a_token_secret_comes_and_goes(place: Place, account: Caller) -> None:
    path = place.all(SECRET)

    assert account.create(path, secret("web-1-0123456789-g1")).ok
    assert account.delete(f"{path}/web-1-0123456789-g1").ok


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("web-1-g1", "Opaque"),
        ("web-1-g1", "example.org/any"),
        ("web-1", names.TOKEN_SECRET_TYPE),
        ("web-1-g0", names.TOKEN_SECRET_TYPE),
        ("web.1-g1", names.TOKEN_SECRET_TYPE),
        (CREDENTIALS, names.TOKEN_SECRET_TYPE),
    ],
)
def test_no_other_secret_is_made(place: Place, account: Caller, name: str, kind: str) -> None:
    answer = account.create(place.all(SECRET), secret(name, kind))

    assert refused(answer, "type: must be provisioning.plexsphere.com/bootstrap-token")


@pytest.mark.parametrize("name", [CREDENTIALS, "theirs"])
def test_no_other_secret_is_deleted(place: Place, account: Caller, name: str) -> None:
    path = place.make(SECRET, name)

    assert refused(account.delete(path), "-g<generation>")


def test_a_credential_is_marked_and_never_changed(place: Place, account: Caller) -> None:
    path = place.make(SECRET, CREDENTIALS, labels={"team": "checkout"})

    assert account.patch(path, MARK).ok
    assert account.patch(path, {"metadata": {"labels": {names.LABEL_HOLD: None}}}).ok

    for body in (
        {"stringData": {"token": "mine"}},
        {"immutable": True},
        {"metadata": {"labels": {"team": None}}},
        {"metadata": {"annotations": {"note": "mine"}}},
        {"metadata": {"finalizers": ["example.org/mine"]}},
        {"metadata": {"ownerReferences": place.owner(place.make(CONFIG_MAP))}},
    ):
        assert refused(account.patch(path, body), "only labels and annotations of"), body


@pytest.mark.parametrize(
    "name", ["theirs", "web-1-g1", "cloud-credentials-mine", f"{CREDENTIALS}0"]
)
def test_no_other_secret_is_marked(place: Place, account: Caller, name: str) -> None:
    path = place.make(SECRET, name)

    assert refused(account.patch(path, MARK), "only of Secrets named cloud-credentials-<hash>")


def external(place: Place, **changes: Any) -> Object:
    body = copy.deepcopy(external_secret.manifest(namespace=place.name, vault=VAULT, store=STORE))
    for where, value in changes.items():
        target = body
        *path, last = where.split("__")
        for part in path:
            target = target[part]
        target[last] = value
    return body


def test_an_external_secret_of_ours_comes_changes_and_goes(
    served: Caller, place: Place, account: Caller
) -> None:
    body = external(place)
    path = external_secrets.path(place.name, body["metadata"]["name"])

    assert account.create(path.rpartition("/")[0], body).ok
    assert account.patch(path, {"spec": {"secretStoreRef": {"name": "another"}}}).ok
    assert account.delete(path).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata__name": "theirs"},
        {"metadata__labels": {}},
        {"spec__target__name": "another"},
        {"spec__target__creationPolicy": "Merge"},
        {"spec__target__template__type": "kubernetes.io/service-account-token"},
        {"spec__target__template__metadata__annotations": {"note": "mine"}},
    ],
    ids=str,
)
def test_no_other_external_secret_is_made(
    served: Caller, place: Place, account: Caller, changes: dict[str, Any]
) -> None:
    answer = account.create(external_secrets.path(place.name), external(place, **changes))

    assert refused(answer, "ExternalSecret")


def test_somebody_elses_external_secret_is_marked_alone(
    served: Caller, place: Place, account: Caller
) -> None:
    body = external(place, metadata__labels={})
    path = external_secrets.path(place.name, body["metadata"]["name"])
    assert served.create(path.rpartition("/")[0], body).ok

    assert account.patch(path, MARK).ok
    assert refused(account.patch(path, {"spec": {"refreshInterval": "1s"}}))
    assert refused(account.delete(path))


def config(**spec: Any) -> Object:
    return {**manifest(CONFIG, "generic", labels=held()), "spec": spec}


MINE: Final = {"secretRef": {"name": CREDENTIALS}}


@pytest.mark.parametrize("namespace", [False, True])
def test_a_provider_config_comes_and_goes(
    served: Caller, place: Place, account: Caller, *, namespace: bool
) -> None:
    reference = {"name": CREDENTIALS, **({"namespace": place.name} if namespace else {})}
    spec = {
        "credentials": {"source": "Secret", "secretRef": reference},
        "endpoint": {"region": "x"},
    }

    assert account.create(place.all(CONFIG), config(**spec)).ok
    assert account.patch(place.one(CONFIG, "generic"), {"spec": {"endpoint": {"region": "y"}}}).ok
    assert account.patch(place.one(CONFIG, "generic"), MARK).ok
    assert account.delete(place.one(CONFIG, "generic")).ok


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"credentials": {"source": "InjectedIdentity"}},
        {"credentials": {"source": "InjectedIdentity", **MINE}},
        {"credentials": {"secretRef": {"name": "theirs"}}},
        {"credentials": {"secretRef": {"name": CREDENTIALS, "namespace": "kube-system"}}},
        {"credentials": MINE, "identity": {"secretRef": {"name": "theirs"}}},
    ],
    ids=str,
)
def test_no_provider_config_reaches_another_secret(
    served: Caller, place: Place, account: Caller, spec: Object
) -> None:
    assert refused(account.create(place.all(CONFIG), config(**spec)), "secretRef")


@pytest.mark.parametrize("kind", [SECRET, CONFIG], ids=lambda kind: kind[1])
def test_nothing_of_it_is_written_outside_projects(
    served: Caller, account: Caller, kind: tuple[str, str, str]
) -> None:
    body = secret("web-1-g1") if kind is SECRET else config(credentials=MINE)
    group = f"/apis/{kind[0]}/v1alpha1" if kind[0] else "/api/v1"

    answer = account.create(f"{group}/namespaces/default/{kind[2]}", body)

    assert refused(answer, "metadata.namespace: must be a Project's")


def test_a_projects_namespace_is_made_and_marked(account: Caller, place: Place) -> None:
    name = names.project_namespace(uuid4())
    label = {f"{names.GROUP}/project": "shop"}
    path = f"/api/v1/namespaces/{name}"

    made = account.create("/api/v1/namespaces", manifest(("", "Namespace", ""), name, labels=label))
    marked = account.patch(path, MARK)

    place.admin.as_user("cleaner", MASTERS, BREAK_GLASS).delete(path)
    assert made.ok
    assert marked.ok


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        {"metadata": {"labels": {"team": "mine"}}},
        {"metadata": {"annotations": {"note": "mine"}}},
        {"metadata": {"finalizers": ["example.org/mine"]}},
    ],
    ids=str,
)
def test_nothing_else_of_a_namespace_changes(place: Place, account: Caller, body: Object) -> None:
    assert refused(account.patch(place.path, body), "plexsphere-project-<uuid>")


def test_a_substrate_is_marked_released_and_deleted(place: Place, account: Caller) -> None:
    path = place.substrate()

    assert account.patch(path, MARK).ok
    claim = {"crossplane.io/claim-name": "pr-1", "crossplane.io/claim-namespace": place.name}
    assert account.patch(path, {"metadata": {"labels": claim}}).ok
    assert account.delete(path).ok


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"image": "mine"}},
        {"status": {"ready": True}},
        {"metadata": {"labels": {"crossplane.io/composite": "mine"}}},
        {"metadata": {"annotations": {"crossplane.io/external-name": "mine"}}},
        {"metadata": {"finalizers": ["example.org/mine"]}},
    ],
    ids=str,
)
def test_nothing_else_of_a_substrate_changes(place: Place, account: Caller, body: Object) -> None:
    path = place.substrate()

    assert refused(account.patch(path, body), "only labels and annotations of")


def test_a_record_loses_the_teardown_finalizer_and_nothing_else(
    place: Place, account: Caller
) -> None:
    path = holding.make_record(place)

    for body in (
        {"spec": {"declaration": {"parameters": {"region": "mine"}}}},
        {"metadata": {"finalizers": [names.FINALIZER, "example.org/mine"]}},
        {"metadata": {"annotations": {names.ANNOTATION_FORCE_RELEASE: "mine"}}},
        {"metadata": {"labels": {"team": "mine"}}},
    ):
        assert refused(account.patch(path, body), "is taken off"), body
    assert account.patch(path, {"metadata": {"finalizers": None}}).ok


def test_of_records_only_loose_ones_are_deleted(place: Place, account: Caller) -> None:
    loose = holding.make_record(place)
    kept = holding.make_record(place, ownerReferences=place.owner(place.make(CONFIG_MAP)))

    assert account.delete(loose).ok
    assert refused(account.delete(kept), "a composite resource controls it")


def test_others_are_not_limited(place: Place) -> None:
    assert place.admin.create(place.all(CONFIG_MAP), manifest(CONFIG_MAP, "probe")).ok
    assert place.there(place.make(SECRET, "theirs"))
    assert place.gone(place.one(RECORD, "nobodys"))


def test_the_policy_is_well_typed(served: Caller) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/plexsphere-account"

    wait_until(
        lambda: "status" in served.get(path).body,
        timeout_s=SETTLED_TIMEOUT_S,
        what="the API server judged the policy",
    )

    assert "expressionWarnings" not in served.get(path).body["status"].get("typeChecking", {})
