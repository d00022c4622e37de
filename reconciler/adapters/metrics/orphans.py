"""The family of the orphan sweep, read when somebody asks.

Its name, help and label, which is a closed set. Source: docs/runbooks/deletion.md "What is
left over".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reconciler.domain.teardown.orphans import OrphanFinding


class OrphanCollector(Collector):
    """Reads what the sweep of this process left standing.

    Args:
        standing: How many of each finding; None while another replica leads, and before the
            first sweep.
    """

    def __init__(self, standing: Callable[[], Mapping[OrphanFinding, int] | None]) -> None:
        self._standing = standing

    def collect(self) -> Iterable[Metric]:
        """Yield the family; it has no sample while nothing is known."""
        family = GaugeMetricFamily(
            "plexsphere_orphans", "Orphans of the last sweep.", labels=["finding"]
        )
        standing = self._standing()
        if standing is not None:
            for finding in OrphanFinding:
                family.add_metric([finding.value], float(standing.get(finding, 0)))
        yield family
