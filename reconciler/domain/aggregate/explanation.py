"""A typed reason and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A typed reason and its sentence."""

    reason: str
    message: str
