"""An Event's name is one that the API server takes, whatever its subject is called."""

from __future__ import annotations

import re

import pytest

from reconciler.adapters.kubernetes.objects import events

NAME_MAX = 253
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize(
    "name",
    [
        "pr-1",
        "a" * 253,
        "a" * 199 + "-b",
        "a" * 199 + ".b",
        "system:controller:shop",
        "Shop_Reader",
        ":",
    ],
)
def test_it_is_a_subdomain(name: str) -> None:
    subject = {"apiVersion": "v1", "kind": "Thing", "name": name, "uid": "uid"}

    made = events.manifest(subject, "shop", reason="Left", message="left", warning=True)

    assert SUBDOMAIN.fullmatch(made["metadata"]["name"])
    assert len(made["metadata"]["name"]) <= NAME_MAX
