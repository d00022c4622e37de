"""What is known of a record's version, whoever is asked for it."""

from __future__ import annotations

import pytest

from reconciler.app.controller.cluster_view import ClusterView
from reconciler.app.queue.keys import RecordKey

KEY = RecordKey(namespace="shop", name="web-1")


@pytest.mark.parametrize(("known", "version"), [("17", "17"), (None, "")])
def test_a_record_that_the_cache_does_not_know_has_no_version(
    known: str | None, version: str
) -> None:
    view = ClusterView(records=dict, projects=dict, version_of=lambda _where: known)

    assert view.version(KEY) == version


@pytest.mark.parametrize(
    ("raw", "version"), [({"metadata": {"resourceVersion": "17"}}, "17"), ({}, "")]
)
def test_without_a_cache_the_record_itself_says_its_version(
    raw: dict[str, dict[str, str]], version: str
) -> None:
    view = ClusterView(records=lambda: {("shop", "web-1"): raw}, projects=dict)

    assert view.version(KEY) == version
