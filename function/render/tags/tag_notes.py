"""Reports labels that could not become tags as they were declared.

The notes and the one message that tells of them. A note names a label's key and a rule,
never a label's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

SHOWN_CHARACTERS: Final = 63
"""Longest label key in a note: enough to recognise it, and what Kubernetes calls a name."""

REPORT_MAX_BYTES: Final = 1024
"""Longest report: what `events.k8s.io/v1` takes as a note."""

_SHOWN_LABELS: Final = 5
"""Labels that one half of a report names; the rest is counted."""

_SHOWN_BYTES: Final = 72
"""Longest key in a report: ten of them, their reasons and the words stay below the limit."""


@unique
class NoteKind(StrEnum):
    """The reason why a label was dropped or altered."""

    ALTERED = "Altered"
    NO_KEY = "NoKey"
    COLLISION = "Collision"
    TOO_MANY = "TooMany"
    TOO_LARGE = "TooLarge"

    @property
    def dropped(self) -> bool:
        """Whether there is no tag at all."""
        return self is not NoteKind.ALTERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One label that is no tag as it was declared.

    Attributes:
        label: Its key, at most 63 characters, unprintable ones replaced.
        kind: What happened.
        rule: The rule that it met, as a sentence without a full stop.
    """

    label: str
    kind: NoteKind
    rule: str


def shown(label: str) -> str:
    """Return a label's key as notes show it."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in label[:SHOWN_CHARACTERS]
    )


def report(notes: Sequence[Note]) -> str | None:
    """Return one message that counts all notes and names the first labels of each half.

    Args:
        notes: In the order in which they shall be named.

    Returns:
        The message, at most 1,024 bytes and the same for equal notes; None when there is
        nothing to tell.
    """
    dropped = [f"{_quoted(note)} ({note.kind})" for note in notes if note.kind.dropped]
    altered = [_quoted(note) for note in notes if not note.kind.dropped]
    parts = [
        f"{len(names)} {'label is' if len(names) == 1 else 'labels are'} {fate}: {_listed(names)}"
        for names, fate in (
            (dropped, "left out of the cloud tags"),
            (altered, "altered in the cloud tags"),
        )
        if names
    ]
    return "; ".join(parts) or None


def _quoted(note: Note) -> str:
    label = note.label.encode()
    if len(label) <= _SHOWN_BYTES:
        return f"'{note.label}'"
    return f"'{label[:_SHOWN_BYTES].decode(errors='ignore')}…'"


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN_LABELS
    return ", ".join(names[:_SHOWN_LABELS]) + (f" and {rest} more" if rest > 0 else "")
