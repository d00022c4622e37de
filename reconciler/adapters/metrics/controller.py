"""The families of the controller and its caches, read when somebody asks.

Names, help and bounded labels. No label is taken from an object: a kind of key, an outcome,
a cause and a kind of object are closed sets. Source: docs/operations/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reconciler.adapters.kubernetes.cache.object_cache import ObjectCache
from reconciler.domain.guard.circuit_breaker import BreakerCause
from reconciler.ports.controller import ControllerState

_PREFIX: Final = "plexsphere"


def registry() -> CollectorRegistry:
    """Make the registry of one process, with what is known of the process itself."""
    made = CollectorRegistry()
    ProcessCollector(registry=made)
    PlatformCollector(registry=made)
    GCCollector(registry=made)
    return made


class ControllerCollector(Collector):
    """Reads the controller of this process, while it leads.

    Args:
        state: The controller's; None while another replica leads.
        caches: Every kind's cache.
    """

    def __init__(
        self, state: Callable[[], ControllerState | None], caches: Mapping[str, ObjectCache]
    ) -> None:
        self._state = state
        self._caches = caches

    def collect(self) -> Iterable[Metric]:
        """Yield every family; those of the controller have no sample on a standby."""
        state = self._state()
        leading = state is not None
        yield _gauge(
            "driver_leading", "Whether this process leads the management cluster.", leading
        )
        yield from self._of_caches()
        if state is not None:
            yield from _of_queue(state)
            yield from _of_records(state)

    def _of_caches(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily(
            f"{_PREFIX}_cache_objects", "Objects in the cache.", labels=["kind"]
        )
        silent = GaugeMetricFamily(
            f"{_PREFIX}_cache_silent_seconds",
            "Seconds since the API server last sent anything.",
            labels=["kind"],
        )
        for kind, cache in self._caches.items():
            objects.add_metric([kind], len(cache.items()))
            silent.add_metric([kind], cache.silent_s)
        yield objects
        yield silent


def _of_queue(state: ControllerState) -> Iterable[Metric]:
    runs = CounterMetricFamily(
        f"{_PREFIX}_reconciles", "Reconciles of keys.", labels=["kind", "outcome"]
    )
    seconds = CounterMetricFamily(
        f"{_PREFIX}_reconcile_seconds", "Seconds spent in reconciles.", labels=["kind"]
    )
    spent: dict[str, float] = {}
    for (kind, failed), worked in state.worked.items():
        runs.add_metric([kind, "failed" if failed else "done"], worked.runs)
        spent[kind] = spent.get(kind, 0.0) + worked.seconds
    for kind, total in spent.items():
        seconds.add_metric([kind], total)
    yield runs
    yield seconds
    yield _gauge("queue_depth", "Keys that wait for a worker.", state.waiting)
    yield _gauge("queue_failing", "Keys whose last reconcile failed.", state.failing)


def _of_records(state: ControllerState) -> Iterable[Metric]:
    yield _gauge("aggregates", "Aggregates that are not Deleted.", state.aggregates)
    yield _gauge(
        "records_settled", "Records that need no reconcile until something changes.", state.settled
    )
    yield _gauge(
        "records_vanished", "Records that are missing without a deletion request.", state.missing
    )
    frozen = GaugeMetricFamily(
        f"{_PREFIX}_frozen", "Causes that freeze the controller.", labels=["cause"]
    )
    for cause in BreakerCause:
        frozen.add_metric([cause.value], float(cause in state.causes))
    yield frozen


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=float(value))
