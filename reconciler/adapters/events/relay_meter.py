"""The metrics of the relay, for Prometheus.

The relay's metrics and their names. Source: docs/events.md "Metrics".
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reconciler.ports.store.outbox import Backlog

_LAG_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
"""From a ring that is answered at once to an outage."""


class PrometheusRelayMeter:
    """Implements `ports.store.outbox.RelayMeter`.

    Args:
        registry: Gets the metrics; a second meter needs another one.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._published = Counter(
            "plexsphere_events_published_total",
            "Events that the sink accepted.",
            ["type"],
            registry=registry,
        )
        self._failed = Counter(
            "plexsphere_events_failed_total",
            "Delivery attempts that failed.",
            ["type"],
            registry=registry,
        )
        self._parked = Counter(
            "plexsphere_events_parked_total",
            "Events that were parked until an operator replays or skips them.",
            ["type"],
            registry=registry,
        )
        self._lag = Histogram(
            "plexsphere_event_lag_seconds",
            "Seconds from an event to its delivery.",
            buckets=_LAG_BUCKETS_S,
            registry=registry,
        )
        self._waiting = Gauge(
            "plexsphere_events_waiting", "Events that are not published.", registry=registry
        )
        self._parked_now = Gauge(
            "plexsphere_events_parked_now",
            "Parked events that wait for an operator.",
            registry=registry,
        )
        self._oldest = Gauge(
            "plexsphere_events_oldest_seconds",
            "Age of the oldest event that waits for the sink and is not parked.",
            registry=registry,
        )

    def published(self, event_type: str, lag_s: float) -> None:
        """Count an event that the sink took, so long after it happened."""
        self._published.labels(event_type).inc()
        self._lag.observe(max(0.0, lag_s))

    def parked(self, event_type: str) -> None:
        """Count an event that was given up."""
        self._parked.labels(event_type).inc()

    def failed(self, event_type: str) -> None:
        """Count an attempt that was not taken."""
        self._failed.labels(event_type).inc()

    def backlog(self, backlog: Backlog) -> None:
        """Note how much waits."""
        self._waiting.set(backlog.waiting)
        self._parked_now.set(backlog.parked)
        self._oldest.set(backlog.oldest.total_seconds())
