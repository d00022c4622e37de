"""The list-and-watch cache over API servers that break, and over a real one."""

from __future__ import annotations

import asyncio
import itertools
import logging
from itertools import pairwise

import pytest

from dev.controlplane import ControlPlane
from dev.process import free_port
from function.contract import names
from reconciler.adapters.kubernetes.cache import object_cache
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.transport.client import (
    REQUEST_TIMEOUT_S,
    WATCH_SILENCE_S,
    KubernetesClient,
)
from reconciler.domain.guard import circuit_breaker
from tests.contract.cluster_worlds import RealWorld, reconciler_kubeconfig
from tests.integration.kubernetes.conftest import Followed, client_of, following, until
from tests.integration.kubernetes.stand_in import Fault, StandIn
from tests.simulation.evidence import made
from tests.simulation.schedule import Kind

pytestmark = pytest.mark.integration

ALL_BUT_LOST = [429, 500, 503, Fault.ENDED, Fault.DROPPED, Fault.FAILED]
"""After these the version that was heard last still holds."""

LOST = [410, Fault.EXPIRED, Fault.MALFORMED, Fault.SHAPELESS, Fault.NAMELESS]
"""After these only a new list helps."""

FIRST_S = 0.05


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "BACKOFF_FIRST_S", FIRST_S)


async def test_a_list_of_several_pages_is_one_list(server: StandIn, followed: Followed) -> None:
    server.page = 2
    things = {name: server.put(name) for name in "abcde"}

    await followed.settled(**_versions(things))

    assert sorted(followed.names) == list("abcde")
    assert len(server.lists) == 3


async def test_every_change_is_heard(server: StandIn, followed: Followed) -> None:
    server.put("a")
    await until(lambda: server.streams)
    followed.heard.clear()

    server.put("b")
    changed = server.put("a")
    server.put("c")
    server.delete("b")
    await until(lambda: len(followed.heard) == 4)

    assert followed.names == ["b", "a", "c", "b"]
    assert followed.cache.get(("shop", "a")) == changed
    assert followed.cache.get(("shop", "b")) is None
    assert set(followed.versions()) == {"a", "c"}


async def test_a_bookmark_saves_a_list_and_is_no_change(
    server: StandIn, followed: Followed
) -> None:
    server.put("a")
    await until(lambda: server.streams)
    version = server.bookmark()
    await until(lambda: server.told == version)

    server.compact()
    server.cut()
    await until(lambda: len(server.watches) == 2)
    server.put("b")
    await until(lambda: "b" in followed.names)

    assert server.watches[-1].version == version
    assert followed.names == ["a", "b"]
    assert len(server.lists) == 1


@pytest.mark.parametrize("fault", ALL_BUT_LOST, ids=str)
async def test_a_watch_goes_on_from_the_last_version(
    server: StandIn, client: KubernetesClient, fault: int | Fault
) -> None:
    kept = server.put("kept")
    server.break_watches(fault, fault)

    async with following(client) as followed:
        await until(lambda: len(server.watches) == 2)
        missed = server.put("missed")
        await followed.settled(**_versions({"kept": kept, "missed": missed}))

    assert sorted(followed.names) == ["kept", "missed"]
    assert len(server.lists) == 1
    assert {watch.version for watch in server.watches[:2]} <= {101, 102}


@pytest.mark.parametrize("fault", LOST, ids=str)
async def test_a_lost_watch_lists_anew(
    server: StandIn, client: KubernetesClient, fault: int | Fault
) -> None:
    kept = server.put("kept")
    server.break_watches(fault)

    async with following(client) as followed:
        await until(lambda: server.streams)
        added = server.put("added")
        await followed.settled(**_versions({"kept": kept, "added": added}))

    assert sorted(followed.names) == ["added", "kept"]
    assert len(server.lists) == 2


async def test_what_was_missed_is_found_by_the_new_list(
    server: StandIn, client: KubernetesClient
) -> None:
    same, changed = server.put("same"), server.put("changed")
    server.put("deleted")
    again = server.put("again")
    server.watch_faults = itertools.chain([Fault.DROPPED], itertools.repeat(429, 2), [None])

    async with following(client) as followed:
        await until(lambda: len(server.watches) >= 2)
        followed.heard.clear()
        changed = server.put("changed")
        server.delete("deleted")
        server.delete("again")
        recreated = server.put("again")
        added = server.put("added")
        server.compact()
        await followed.settled(
            **_versions({"same": same, "changed": changed, "again": recreated, "added": added})
        )

    assert sorted(followed.names) == ["added", "again", "changed", "deleted"]
    found = followed.cache.get(("shop", "again"))
    assert found is not None
    assert found["metadata"]["uid"] != again["metadata"]["uid"]


async def test_a_list_that_expires_between_pages_starts_over(
    server: StandIn, client: KubernetesClient
) -> None:
    server.page = 2
    things = {name: server.put(name) for name in "abc"}
    server.break_pages(None, 410)

    async with following(client) as followed:
        await followed.settled(**_versions(things))

    assert sorted(followed.names) == list("abc")
    assert len(server.lists) == 4


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_a_list_that_fails_is_tried_again(
    server: StandIn, client: KubernetesClient, status: int
) -> None:
    thing = server.put("a")
    server.break_pages(status, status)

    async with following(client) as followed:
        await followed.settled(**_versions({"a": thing}))

    assert len(server.lists) == 3


@pytest.mark.parametrize("fault", [*ALL_BUT_LOST, *LOST], ids=str)
async def test_watches_that_always_fail_are_asked_for_less_and_less(
    server: StandIn, client: KubernetesClient, fault: int | Fault
) -> None:
    server.put("a")
    server.watch_faults = itertools.repeat(fault)

    async with following(client):
        await until(lambda: len(server.watches) == 4)

    _assert_growing([watch.at for watch in server.watches])
    assert len(server.lists) == (4 if fault in LOST else 1)


async def test_lists_that_always_fail_are_asked_for_less_and_less(
    server: StandIn, client: KubernetesClient
) -> None:
    server.page_faults = itertools.repeat(500)

    async with following(client) as followed:
        await until(lambda: len(server.lists) == 4)
        assert not followed.cache.synced

    _assert_growing([page.at for page in server.lists])
    assert server.watches == []


async def test_a_stream_that_ends_at_every_event_is_no_busy_loop(
    server: StandIn, client: KubernetesClient
) -> None:
    server.watch_faults = itertools.repeat(Fault.ENDED)

    async with following(client) as followed:
        for name in "abcd":
            server.put(name)
            await until(lambda name=name: name in followed.names)  # type: ignore[misc]  # mypy cannot type a default in a lambda

    gaps = [after.at - before.at for before, after in pairwise(server.watches)]
    assert min(gaps) >= FIRST_S * 0.5


async def test_a_version_that_leads_nowhere_is_doubted(
    server: StandIn, client: KubernetesClient
) -> None:
    server.watch_faults = itertools.chain(
        itertools.repeat(500, object_cache.WATCHES_MAX), itertools.repeat(None)
    )

    async with following(client):
        await until(lambda: server.streams)

    assert len(server.lists) == 2


async def test_an_outage_of_hours_is_survived(
    server: StandIn, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "BACKOFF_MAX_S", 0.0)
    logging.getLogger(object_cache.__name__).setLevel(logging.ERROR)
    failures = 1030
    server.page_faults = itertools.chain(itertools.repeat(503, failures), itertools.repeat(None))
    thing = server.put("a")

    async with following(client) as followed:
        await followed.settled(**_versions({"a": thing}))

    logging.getLogger(object_cache.__name__).setLevel(logging.NOTSET)
    assert len(server.lists) == failures + 1


async def test_a_server_that_comes_late_and_comes_again_is_followed(server: StandIn) -> None:
    port = free_port()
    first = server.put("first")

    async with client_of(f"http://127.0.0.1:{port}") as client, following(client) as followed:
        assert not followed.cache.synced
        made(Kind.API_AWAY)
        async with server.listening(port):
            await followed.settled(**_versions({"first": first}))
            await until(lambda: server.streams)
        second = server.put("second")
        async with server.listening(port):
            await followed.settled(**_versions({"first": first, "second": second}))

    assert followed.names == ["first", "second"]
    assert len(server.lists) == 1


async def test_a_silent_stream_is_given_up_for_a_list(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, client: KubernetesClient
) -> None:
    monkeypatch.setattr("reconciler.adapters.kubernetes.transport.client.WATCH_SILENCE_S", 0.1)
    server.put("a")

    async with following(client):
        await until(lambda: len(server.watches) == 2)
        made(Kind.WATCH_STALLED)

    assert len(server.lists) == 2
    assert [watch.version for watch in server.watches] == [101, 101]


async def test_a_cache_that_somebody_found_wrong_is_listed_anew_but_not_at_once(
    server: StandIn, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = server.put("a")
    async with following(client) as followed:
        await until(lambda: server.streams)
        untold = server.put_untold("b")

        followed.cache.list_anew()
        told = server.put("c")
        await followed.settled(**_versions({"a": first, "c": told}))
        assert len(server.lists) == 1

        monkeypatch.setattr(object_cache, "ANEW_MIN_S", 0.0)
        followed.cache.list_anew()
        asyncio.get_running_loop().call_soon(followed.cache.list_anew)
        await followed.settled(**_versions({"a": first, "b": untold, "c": told}))
        await until(lambda: len(server.watches) == 2)

    assert len(server.lists) == 2
    assert followed.names == ["a", "c", "b"]


async def test_a_doubt_while_no_stream_is_open_is_not_forgotten(
    server: StandIn, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "ANEW_MIN_S", 0.0)
    first = server.put("a")
    async with following(client) as followed:
        await until(lambda: server.streams)
        untold = server.put_untold("b")

        server.break_watches(*[503] * 3)
        server.cut()
        await until(lambda: not server.streams)
        followed.cache.list_anew()
        await followed.settled(**_versions({"a": first, "b": untold}))


async def test_a_list_that_is_too_soon_comes_once_it_is_not(
    server: StandIn, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "ANEW_MIN_S", 0.5)
    first = server.put("a")
    async with following(client) as followed:
        await until(lambda: server.streams)
        untold = server.put_untold("b")

        followed.cache.list_anew()
        await followed.settled(**_versions({"a": first, "b": untold}))


def test_a_silent_stream_is_given_up_before_the_cache_counts_as_stale() -> None:
    heard_again_s = WATCH_SILENCE_S + 2.0 * object_cache.BACKOFF_FIRST_S + REQUEST_TIMEOUT_S

    assert heard_again_s < circuit_breaker.SILENCE_S


async def test_more_objects_than_are_allowed_are_not_taken_for_all(
    server: StandIn, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "PAGES_MAX", 2)
    server.page = 1
    for name in "abc":
        server.put(name)

    async with following(client) as followed:
        await until(lambda: len(server.lists) >= 4)
        assert not followed.cache.synced

    assert followed.heard == []


async def test_the_view_outlives_a_new_list(server: StandIn, client: KubernetesClient) -> None:
    server.put("a")
    server.break_watches(410)

    async with following(client) as followed:
        view = followed.cache.items()
        await until(lambda: server.streams)
        server.put("b")
        await until(lambda: len(view) == 2)

    assert len(server.lists) == 2


async def test_a_real_server_is_followed(
    control_plane: ControlPlane, real: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "PAGE", 2)
    before = [real.new_record() for _ in range(5)]
    path = f"/apis/{names.API_VERSION}/namespaces/{real.namespace}/provisioningrecords"
    client = await open_client(reconciler_kubeconfig(control_plane))

    async with following(client, path) as followed:
        await until(lambda: len(followed.cache.items()) == 5)
        await real.cluster.records.write_status(before[0], {"phase": "Ready"})
        real.remove_record(before[1])
        after = real.new_record()
        await until(lambda: _key(after) in followed.cache.items())
        await until(lambda: _key(before[1]) not in followed.cache.items())

        live = {_key(item): item for item in real.admin.get(path).body["items"]}
        for item in live.values():
            # Nobody reads who wrote which field.
            del item["metadata"]["managedFields"]
        await until(lambda: dict(followed.cache.items()) == live)
        assert {_key(item) for item in (*before, after)} <= set(followed.heard)
    await client.close()


def _versions(things: dict[str, dict[str, dict[str, str]]]) -> dict[str, str]:
    return {name: thing["metadata"]["resourceVersion"] for name, thing in things.items()}


def _key(item: dict[str, dict[str, str]]) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _assert_growing(times: list[float]) -> None:
    """Assert that the n-th pause is at least half of what doubling allows."""
    for number, (before, after) in enumerate(pairwise(times), start=1):
        assert after - before >= FIRST_S * 2**number * 0.5
