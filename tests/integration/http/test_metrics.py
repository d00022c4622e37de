"""What `/metrics` shows: closed label sets, samples only where they are known."""

from __future__ import annotations

import aiohttp
import pytest
from kubernetes.aio.client import ApiClient, Configuration
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from reconciler.adapters.http.listener import listening
from reconciler.adapters.http.operators import operator_app
from reconciler.adapters.http.operators.operator_api import OperatorAPI
from reconciler.adapters.http.operators.operator_auth import Gate
from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.adapters.kubernetes.transport.client import KubernetesClient
from reconciler.adapters.metrics.controller import ControllerCollector, registry
from reconciler.app.controller.controller import Controller
from reconciler.domain.guard.circuit_breaker import BreakerCause
from tests.fakes.reviewer import InMemoryReviewer
from tests.integration.http.conftest import LOOPBACK, unasked_store
from tests.unit.reconciler.app.crowd import Crowd

pytestmark = pytest.mark.integration

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def _asked(driver: Controller | None) -> Samples:
    """Ask a listener for what it shows, as Prometheus does."""
    client = KubernetesClient(ApiClient(Configuration(host="http://127.0.0.1:1")))
    cache = ObjectCache(client, "/apis/x/v1/things", on_change=lambda _key: None)
    metrics = registry()
    metrics.register(
        ControllerCollector(
            lambda: driver.state if driver else None, {"provisioningrecords": cache}
        )
    )
    api = OperatorAPI(Gate(InMemoryReviewer()), unasked_store())
    app = operator_app.operator_app({}, api, metrics=lambda: generate_latest(metrics))
    try:
        async with (
            listening(app, LOOPBACK, tls=None) as url,
            aiohttp.ClientSession() as session,
            session.get(f"{url}/metrics") as response,
        ):
            assert response.status == 200
            assert response.content_type == "text/plain"
            text = await response.text()
    finally:
        await client.close()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_a_leader_shows_its_records_queue_and_caches() -> None:
    crowd = Crowd(60)
    await crowd.work()

    shown = await _asked(crowd.driver)

    assert shown["plexsphere_driver_leading", ()] == 1
    assert shown["plexsphere_aggregates", ()] == 60
    assert shown["plexsphere_records_settled", ()] > 0
    assert shown["plexsphere_queue_depth", ()] == 0
    done = (("kind", "record"), ("outcome", "done"))
    assert shown["plexsphere_reconciles_total", done] >= 60
    assert shown["plexsphere_reconcile_seconds_total", (("kind", "record"),)] > 0
    assert shown["plexsphere_cache_objects", (("kind", "provisioningrecords"),)] == 0
    assert shown["process_resident_memory_bytes", ()] > 0


async def test_every_cause_of_a_freeze_is_shown_and_the_right_one_is_set() -> None:
    crowd = Crowd(60)
    crowd.lose(crowd.resources, watch=True)
    await crowd.work()

    shown = await _asked(crowd.driver)

    frozen = {
        cause: shown["plexsphere_frozen", (("cause", cause.value),)] for cause in BreakerCause
    }
    assert frozen == {
        cause: float(cause is BreakerCause.RECORDS_VANISHED) for cause in BreakerCause
    }
    assert shown["plexsphere_records_vanished", ()] == 60


async def test_a_standby_shows_its_caches_and_no_driver() -> None:
    shown = await _asked(None)

    names = {name for name, _ in shown if name.startswith("plexsphere_")}
    assert names == {
        "plexsphere_driver_leading",
        "plexsphere_cache_objects",
        "plexsphere_cache_silent_seconds",
    }


async def test_no_label_holds_a_name_or_an_id() -> None:
    crowd = Crowd(5)
    await crowd.work()

    shown = await _asked(crowd.driver)

    ours = [dict(labels) for name, labels in shown if name.startswith("plexsphere_")]
    values = {value for labels in ours for value in labels.values()}
    known = {"record", "credential", "namespace", "provisioningrecords", "done", *BreakerCause}
    assert values <= known
