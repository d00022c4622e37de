"""The metrics of the function.

The metric families and their bounded labels.

`grpc_server_*` is what every Go function counts, name for name, so one dashboard shows
all. `function_run_function_*` follows core's prefix and says what the answers were. Every
label has a closed set of values, none is taken from a request. Source: reference,
crossplane §7.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

_CALL: Final = ("grpc_type", "grpc_service", "grpc_method")

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""One node takes a millisecond, a hundred a tenth of a second; Go's default begins at 5 ms."""

_BYTES: Final = tuple(float(4**power * 1024) for power in range(7))
"""1 KiB to 4 MiB, where Crossplane's limit is."""


class Metrics:
    """Every family of one process, in a registry of its own.

    Attributes:
        registry: What `/metrics` shows.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.started = self._counter("grpc_server_started", "RPCs started on the server.", _CALL)
        self.handled = self._counter(
            "grpc_server_handled",
            "RPCs completed on the server, regardless of success or failure.",
            (*_CALL, "grpc_code"),
        )
        self.seconds = Histogram(
            "grpc_server_handling_seconds",
            "Time from a decoded request to its answer, in seconds.",
            _CALL,
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.in_flight = Gauge(
            "function_run_function_requests_in_flight",
            "RPCs in flight.",
            registry=self.registry,
        )
        self.outcomes = self._counter(
            "function_run_function_outcome",
            "RunFunctionResponses by the step's input kind, outcome and reason.",
            ("input_kind", "outcome", "reason", "result_severity"),
        )
        self.response_bytes = Histogram(
            "function_run_function_response_bytes",
            "Size of a serialised RunFunctionResponse.",
            registry=self.registry,
            buckets=_BYTES,
        )

    def _counter(self, name: str, text: str, labels: Sequence[str]) -> Counter:
        return Counter(name, text, labels, registry=self.registry)
