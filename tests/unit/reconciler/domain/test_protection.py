"""What an aggregate protects, from its record's list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from function.contract.record import SubstrateReference, XRReference
from reconciler.domain.aggregate.errors import RefusedError
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.protection import protection


def _reference(kind: str, name: str, version: str = "v1") -> SubstrateReference:
    return SubstrateReference(api_version=f"cloud.test/{version}", kind=kind, name=name)


SERVER = _reference("Server", "")
NETWORK = _reference("Network", "net")
VOLUME = _reference("Volume", "vol")


def test_an_empty_name_is_the_aggregates_own_and_the_rest_are_siblings() -> None:
    protected = protection.protect([SERVER, NETWORK], xr_name="pr-1")

    assert protected == (
        ProtectedObject(reference=_reference("Server", "pr-1")),
        ProtectedObject(reference=NETWORK, sibling=True),
    )


def test_a_name_that_its_step_gave_stays() -> None:
    (substrate,) = protection.protect([_reference("Server", "db")], xr_name="pr-1")

    assert substrate.reference.name == "db"


def test_a_list_without_a_substrate_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"spec\.substrate"):
        protection.protect([], xr_name="pr-1")


def test_added_siblings_are_followed_and_none_is_forgotten() -> None:
    before = protection.protect([SERVER, NETWORK], xr_name="pr-1")
    before = (replace(before[0], uid="u", seen=True), before[1])

    after = protection.follow(before, [SERVER, VOLUME])

    assert after == (*before, ProtectedObject(reference=VOLUME, sibling=True))
    assert protection.unlisted(after, [SERVER, VOLUME]) == (before[1],)


def test_a_new_version_is_followed_under_the_same_facts() -> None:
    before = protection.protect([SERVER, NETWORK], xr_name="pr-1")
    before = (replace(before[0], seen=True), before[1])
    listed = [_reference("Server", "pr-1", "v2"), _reference("Network", "net", "v2")]

    substrate, sibling = protection.follow(before, listed)

    assert (substrate.reference.api_version, substrate.seen) == ("cloud.test/v2", True)
    assert (sibling.reference.api_version, sibling.sibling) == ("cloud.test/v2", True)
    assert protection.protects([sibling], NETWORK)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_reference("Instance", ""), id="kind"),
        pytest.param(_reference("Server", "another"), id="name"),
        pytest.param(
            SubstrateReference(api_version="other.test/v1", kind="Server", name=""), id="group"
        ),
    ],
)
def test_another_substrate_is_refused(other: SubstrateReference) -> None:
    before = protection.protect([SERVER], xr_name="pr-1")

    with pytest.raises(RefusedError) as refused:
        protection.follow(before, [other])

    assert refused.value.shown_reason == "Immutable"


def test_a_list_that_is_not_known_yet_changes_nothing() -> None:
    before = protection.protect([SERVER, NETWORK], xr_name="pr-1")

    assert protection.follow(before, []) == before


POOL = XRReference(api_version="platform.test/v1", kind="Pool", name="pool", uid="u-1")


@pytest.mark.parametrize(
    ("controller", "ours"),
    [
        (None, True),
        (POOL, True),
        (POOL.model_copy(update={"uid": "u-2"}), True),
        (POOL.model_copy(update={"api_version": "platform.test/v2"}), True),
        (POOL.model_copy(update={"api_version": "other.test/v1"}), False),
        (POOL.model_copy(update={"name": "other"}), False),
        (POOL.model_copy(update={"kind": "Network"}), False),
    ],
)
def test_an_object_that_another_composite_controls_is_not_ours(
    controller: XRReference | None, ours: bool
) -> None:
    assert protection.is_ours(controller, POOL) is ours


@pytest.mark.parametrize(
    ("api_version", "kind"), [("v1", "Secret"), ("external-secrets.io/v1", "ExternalSecret")]
)
def test_what_a_credential_is_made_of_is_nobodys_to_protect(api_version: str, kind: str) -> None:
    name = "cloud-credentials-0123456789abcdef"
    credential = SubstrateReference(api_version=api_version, kind=kind, name=name)
    before = protection.protect([SERVER], xr_name="pr-1")

    with pytest.raises(RefusedError, match=r"spec\.substrate\[1\]: must not name"):
        protection.protect([SERVER, credential], xr_name="pr-1")
    with pytest.raises(RefusedError, match=r"spec\.substrate\[0\]: must not name"):
        protection.protect([credential], xr_name="pr-1")
    with pytest.raises(RefusedError, match=r"must not name"):
        protection.follow(before, [SERVER, credential])


def test_a_secret_of_its_own_may_be_held_beside_a_node() -> None:
    own = SubstrateReference(api_version="v1", kind="Secret", name="volume-key")

    assert protection.protect([SERVER, own], xr_name="pr-1")[1].reference == own
