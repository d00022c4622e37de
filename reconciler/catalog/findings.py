"""Findings in a catalogue, as values: file, field, rule.

The finding and a list to collect them. Every module of this package imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

FINDINGS_MAX = 200
"""Most findings of one file: an operator reads no further, and a hostile file names thousands."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """One broken rule.

    Attributes:
        file: Path below the catalogue's folder.
        field: Field path in that file; empty when the whole file is meant.
        rule: What is wrong, as a phrase that follows the field; single line.
        advisory: Whether the blueprint can be imported nevertheless.
    """

    file: str
    field: str
    rule: str
    advisory: bool = False

    def __str__(self) -> str:
        where = f"{self.file}: {self.field}" if self.field else self.file
        # Names come from the file: one that holds a line break must not forge a finding.
        return "".join(
            character if character.isprintable() else "\ufffd"
            for character in f"{where}: {self.rule}"
        )


@dataclass(slots=True, kw_only=True)
class Report:
    """Collects the findings of one file, in the order they were made."""

    file: str
    _found: list[Finding] = field(default_factory=list)

    def add(self, path: str, rule: str, *, advisory: bool = False) -> None:
        """Note a broken rule; past `FINDINGS_MAX` it is dropped."""
        if len(self._found) < FINDINGS_MAX:
            self._found.append(Finding(file=self.file, field=path, rule=rule, advisory=advisory))

    @property
    def findings(self) -> Sequence[Finding]:
        """What was found."""
        return tuple(self._found)
