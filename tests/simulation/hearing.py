"""What a world's processes log: nothing secret, and no error that nobody foresaw.

Listening while a world is played.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_UNFORESEEN: Final = re.compile(
    r"error=(?:.* <- )?(Assertion|Attribute|Index|Key|Lookup|Name|Runtime|Type|UnboundLocal|"
    r"Validation|Value|ZeroDivision)Error"
)


class Heard(logging.Handler):
    """Keeps every line."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line as it would be written."""
        self.lines.append(record.getMessage())

    def unforeseen(self) -> str | None:
        """Return the first line that tells of a programming error; None without one."""
        return next((line for line in self.lines if _UNFORESEEN.search(line)), None)


@contextmanager
def heard() -> Iterator[Heard]:
    """Listen to everything the reconciler logs, and to nothing of it elsewhere."""
    logger = logging.getLogger("reconciler")
    before = (logger.propagate, logger.level)
    handler = Heard()
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before[0], before[1]
