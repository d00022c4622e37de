"""Which fast test runs which line, so that a change is asked of those alone that could notice it.

A plugin of pytest (`-p dev.covering`): it traces one run of the tests and writes, beside the tree,
who ran what and how long each took. A test is a function with all its parameters; what runs at
import is nobody's. `dev.mutants` makes the run and reads what came of it.

The tracing, and asking it.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import coverage
import pytest

LINES: Final = "lines.coverage"
TIMES: Final = "times.json"
FOLDER: Final = "PLEXSPHERE_COVERING"
"""Environment variable: where both files go."""


def function_of(nodeid: str) -> str:
    """Name a test without its parameters."""
    return nodeid.partition("[")[0]


class Tracing:
    """Traces the code under a tree for as long as pytest runs."""

    def __init__(self, folder: Path, code: Iterable[str]) -> None:
        self._folder = folder
        self._times: defaultdict[str, float] = defaultdict(float)
        self._coverage = coverage.Coverage(
            data_file=str(folder / LINES), source=[*code], config_file=False
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note what runs from now on as this test's."""
        name = function_of(item.nodeid)
        self._coverage.switch_context(name)
        begun = time.monotonic()
        answer = yield
        self._times[name] += time.monotonic() - begun
        self._coverage.switch_context("")
        return answer

    def pytest_unconfigure(self) -> None:
        """Write what was seen."""
        self._coverage.stop()
        self._coverage.save()
        (self._folder / TIMES).write_text(json.dumps(self._times), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Begin before the tests import anything."""
    folder = Path(os.environ[FOLDER])
    config.pluginmanager.register(Tracing(folder, ("function", "reconciler")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What one traced run saw.

    Attributes:
        tree: Where the traced code was.
        times: Seconds that each test took, with all its parameters.
        left_out: Tests that nobody asks.
    """

    tree: Path
    times: dict[str, float]
    left_out: frozenset[str]
    _data: coverage.CoverageData = field(repr=False)

    def of(self, path: str, lines: range) -> list[str]:
        """Return the tests that run any of these lines, the quickest first."""
        ran = self._data.contexts_by_lineno(str(self.tree / path))
        found = {test for line in lines for test in ran.get(line, []) if test}
        return self._sorted(found)

    def of_modules(self, paths: Iterable[str]) -> list[str]:
        """Return the tests that run any line of these modules, the quickest first."""
        ran = (self._data.contexts_by_lineno(str(self.tree / path)) for path in paths)
        tests = (tests for lines in ran for tests in lines.values())
        return self._sorted({test for each in tests for test in each if test})

    def _sorted(self, tests: Iterable[str]) -> list[str]:
        asked = set(tests) - self.left_out
        return sorted(asked, key=lambda test: (self.times.get(test, 0.0), test))


def seen(folder: Path, tree: Path, without: Iterable[str] = ()) -> Covered:
    """Read what a traced run wrote.

    Args:
        folder: Where it wrote.
        tree: Where the traced code was.
        without: Tests that are not asked, by node id.
    """
    data = coverage.CoverageData(str(folder / LINES))
    data.read()
    times = json.loads((folder / TIMES).read_text(encoding="utf-8"))
    left_out = frozenset(map(function_of, without))
    return Covered(tree=tree, times=times, left_out=left_out, _data=data)
