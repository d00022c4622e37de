"""What is composed again of an object that nobody composes any more is what was composed of it."""

from __future__ import annotations

from typing import Any

from function.compose.last_applied import last_applied

Object = dict[str, Any]

LIVE: Object = {
    "apiVersion": "blueprints.example.org/v1",
    "kind": "XMachine",
    "metadata": {"name": "m-1", "uid": "1", "labels": {"team": "desk"}, "generation": 4},
    "spec": {"size": "small", "crossplane": {"resourceRefs": [{"name": "a"}]}},
    "status": {"ready": True},
}


def test_of_an_object_that_does_not_say_who_owns_what_all_but_crossplanes_own_is_kept() -> None:
    assert last_applied(LIVE) == {
        "apiVersion": "blueprints.example.org/v1",
        "kind": "XMachine",
        "metadata": {"name": "m-1", "labels": {"team": "desk"}},
        "spec": {"size": "small"},
    }


def test_it_is_read_and_not_changed() -> None:
    last_applied(LIVE)["spec"]["size"] = "large"

    assert LIVE["spec"] == {"size": "small", "crossplane": {"resourceRefs": [{"name": "a"}]}}
