"""One spelling for each place in the vault, so that no two credentials share a Secret."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from dev.controlplane import ControlPlane
from function.contract import names
from tests.e2e.deploy.holding import DEPLOY
from tests.e2e.deploy.identity import wait_until
from tests.e2e.deploy.manifests import changed, example
from tests.e2e.deploy.place import Place
from tests.e2e.deploy.test_crds import Made, offered, said

pytestmark = pytest.mark.e2e

KIND = "CloudCredential"
DEFINITION = DEPLOY / "crds" / f"{names.GROUP}_cloudcredentials.yaml"
DEADLINE_S = 30


def _credential(mount: str, path: str) -> dict[str, Any]:
    return changed(example(KIND), "spec.vault", {"mount": mount, "path": path})


@pytest.mark.parametrize(
    ("mount", "path"), [("kv", "acme/hetzner"), ("KV", "Acme"), ("k v", "a.b/c-d"), ("kv", "ä/*")]
)
def test_one_spelling_of_a_place_is_taken(place: Place, mount: str, path: str) -> None:
    answer = offered(place, _credential(mount, path))

    assert answer.ok, answer.message


@pytest.mark.parametrize(
    ("mount", "path", "words"),
    [
        ("a/b", "c", ["spec.vault.mount", "must not hold a slash"]),
        ("kv/", "c", ["spec.vault.mount", "must not hold a slash"]),
        ("/kv", "c", ["spec.vault.mount", "must not hold a slash"]),
        ("kv", "/c", ["spec.vault.path", "neither begin nor end"]),
        ("kv", "c/", ["spec.vault.path", "neither begin nor end"]),
        ("kv", "b//c", ["spec.vault.path", "two in a row"]),
        ("kv", "/", ["spec.vault.path", "neither begin nor end"]),
    ],
)
def test_another_spelling_is_refused(place: Place, mount: str, path: str, words: list[str]) -> None:
    answer = offered(place, _credential(mount, path))

    assert said(answer, *words), answer.message


def test_a_credential_of_before_stands_and_moves_without_another_secret(
    place: Place, control_plane: ControlPlane
) -> None:
    definition = yaml.safe_load(DEFINITION.read_text())
    _apply(place, control_plane, _without_rules(definition), taken=True)
    made = Made(place, KIND)
    made.item = changed(made.item, "spec.vault", {"mount": "a/b", "path": "c"})
    assert made.create().ok
    _apply(place, control_plane, definition, taken=False)

    shared = made.dry_run("spec.projects", ["shop", "desk"])
    worse = made.dry_run("spec.vault.mount", "a/b/")
    moved = made.dry_run("spec.vault", {"mount": "a", "path": "b/c"})

    made.remove()
    assert shared.ok, shared.message
    assert said(worse, "spec.vault.mount", "must not hold a slash"), worse.message
    assert moved.ok, moved.message
    assert names.cloud_credentials_secret_name(
        mount="a/b", path="c"
    ) == names.cloud_credentials_secret_name(mount="a", path="b/c")


def _without_rules(definition: dict[str, Any]) -> dict[str, Any]:
    old = copy.deepcopy(definition)
    schema = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for field in schema["properties"]["spec"]["properties"]["vault"]["properties"].values():
        del field["x-kubernetes-validations"]
    return old


def _apply(
    place: Place, control_plane: ControlPlane, definition: dict[str, Any], *, taken: bool
) -> None:
    """Apply a definition, and wait until the server goes by it."""
    control_plane.apply(definition)
    wait_until(
        lambda: offered(place, _credential("a/b", "c")).ok is taken,
        timeout_s=DEADLINE_S,
        what="the definition is in force",
    )
