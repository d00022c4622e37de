"""What the relay's meter shows."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from reconciler.adapters.events.relay_meter import PrometheusRelayMeter
from reconciler.ports.store.outbox import Backlog

PAGE = Path(__file__).parents[4] / "docs" / "events.md"


def test_everything_is_counted_under_its_name() -> None:
    registry = CollectorRegistry()
    meter = PrometheusRelayMeter(registry)

    meter.published("identity.NodeRegistered", 0.3)
    meter.published("identity.NodeRegistered", -5.0)
    meter.failed("identity.NodeRegistered")
    meter.parked("identity.NodeRegistered")
    meter.backlog(Backlog(waiting=7, parked=1, oldest=timedelta(minutes=2)))

    found = {
        (sample.name, sample.labels.get("type", sample.labels.get("le", ""))): sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    kind = "identity.NodeRegistered"
    assert found["plexsphere_events_published_total", kind] == 2
    assert found["plexsphere_events_failed_total", kind] == 1
    assert found["plexsphere_events_parked_total", kind] == 1
    assert found["plexsphere_events_waiting", ""] == 7
    assert found["plexsphere_events_parked_now", ""] == 1
    assert found["plexsphere_events_oldest_seconds", ""] == 120
    assert found["plexsphere_event_lag_seconds_bucket", "0.25"] == 1, "clocks may differ"
    assert found["plexsphere_event_lag_seconds_count", ""] == 2


def test_the_page_names_every_metric() -> None:
    registry = CollectorRegistry()
    PrometheusRelayMeter(registry)
    text = generate_latest(registry).decode()

    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    named = set(re.findall(r"`(plexsphere_event[a-z_]+)`", PAGE.read_text(encoding="utf-8")))
    assert {name for name in names if not name.endswith("_created")} == named
