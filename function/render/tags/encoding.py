"""Labels as cloud tags.

The encoding of declared labels for a provider, and the forms providers want it in.

The encoding changes as little as the provider allows: what is illegal becomes `_`, what
may not begin a key gets `x-` before it, what is too long is cut. It is the same for equal
labels in any order, and encoding what it made changes nothing.
Source: seed 000, "cloudTags"; contracts §5; docs/decisions/0008.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from function.contract.strategy import CloudProvider
from function.render.tags.tag_notes import Note, NoteKind, shown
from function.render.tags.tag_rules import RULES, Rules, TextRule, Unit

_SUBSTITUTE: Final = "_"
_KNOWN_MAX: Final = 256
"""Sets of labels whose tags are remembered: the nodes of an XR mostly share one, and each is
asked for twice a call. A set takes some kilobytes."""

_ESCAPE: Final = "x-"
"""Before a key that may not begin as it does: legal first characters everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Labels as one provider takes them.

    Attributes:
        tags: Key to value, in key order.
        notes: What was altered or left out, in the order of the labels' keys.
    """

    tags: Mapping[str, str]
    notes: tuple[Note, ...]


def encode(provider: CloudProvider, labels: Mapping[str, str]) -> Encoded:
    """Return labels as tags that are legal on a provider, and notes of what that cost.

    Labels are taken in the order of their keys. Of two that end up with one key the first
    stays; what no longer fits in number or size is left out. Every label is among the tags
    as it was declared, or in a note.

    Total: any texts give legal tags.
    """
    return _encoded(provider, tuple(sorted(labels.items())))


@functools.lru_cache(maxsize=_KNOWN_MAX)
def _encoded(provider: CloudProvider, labels: tuple[tuple[str, str], ...]) -> Encoded:
    shelf = _Shelf(provider=provider, rules=RULES[provider])
    notes = tuple(note for label, value in labels if (note := shelf.put(label, value)) is not None)
    return Encoded(tags=MappingProxyType(dict(sorted(shelf.tags.items()))), notes=notes)


def cloud_tags(provider: CloudProvider, labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels as tags, without what `encode` says about them."""
    return dict(encode(provider, labels).tags)


def as_list(tags: Mapping[str, str], key_field: str, value_field: str) -> list[dict[str, str]]:
    """Return tags as the list that some kinds take instead of a map, in key order.

    Args:
        tags: As `encode` made them.
        key_field: What an item calls the key, for example `key`.
        value_field: What it calls the value.
    """
    return [{key_field: key, value_field: tags[key]} for key in sorted(tags)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shelf:
    """The tags so far, and by their key as the provider compares it, whose they are."""

    provider: CloudProvider
    rules: Rules
    tags: dict[str, str] = field(default_factory=dict)
    owners: dict[str, tuple[str, str]] = field(default_factory=dict)

    def put(self, label: str, value: str) -> Note | None:
        """Add a label; a note where its tag is missing or another."""
        key, text = _key(label, self.rules), _value(value, self.rules)
        if not key:
            return _note(
                label, NoteKind.NO_KEY, f"it has no character that is legal on {self.provider}"
            )
        owner = self.owners.get(key.lower() if self.rules.caseless else key)
        if owner is not None:
            return self._meet(owner, label, value, text)
        if len(self.tags) >= self.rules.most_tags:
            rule = f"{self.provider} has room for {self.rules.most_tags} labels"
            return _note(label, NoteKind.TOO_MANY, rule)
        if self._overflows(key, text):
            rule = f"{self.provider} has room for {self.rules.most_in_all} characters of labels"
            return _note(label, NoteKind.TOO_LARGE, rule)
        self.tags[key] = text
        self.owners[key.lower() if self.rules.caseless else key] = (label, key)
        return self._altered(label, key=key != label, value=text != value)

    def _meet(self, owner: tuple[str, str], label: str, value: str, text: str) -> Note | None:
        other, kept = owner
        if self.tags[kept] != text:
            rule = f"{self.provider} treats it as the same key as '{shown(other)}'"
            return _note(label, NoteKind.COLLISION, rule)
        return self._altered(label, key=kept != label, value=text != value)

    def _overflows(self, key: str, value: str) -> bool:
        if self.rules.most_in_all is None:
            return False
        used = sum(len(name) + len(text) for name, text in self.tags.items())
        return used + len(key) + len(value) > self.rules.most_in_all

    def _altered(self, label: str, *, key: bool, value: bool) -> Note | None:
        parts = []
        if key:
            parts.append(f"its key must hold {self.rules.key.phrase}{_beginning(self.rules)}")
        if value:
            parts.append(f"its value must hold {self.rules.value.phrase}")
        return _note(label, NoteKind.ALTERED, "; ".join(parts)) if parts else None


def _note(label: str, kind: NoteKind, rule: str) -> Note:
    return Note(label=shown(label), kind=kind, rule=rule)


def _beginning(rules: Rules) -> str:
    letter = ", beginning with a letter" if rules.starts_with_letter else ""
    return f"{letter}, not beginning with {' or '.join(rules.reserved)}"


def _key(label: str, rules: Rules) -> str:
    """Return a label's key as a tag's; empty when nothing of it is legal."""
    key = _shaped(label, rules)
    misplaced = rules.starts_with_letter and unicodedata.category(key[:1] or "x")[0] != "L"
    if key and (misplaced or key.lower().startswith(rules.reserved)):
        return _shaped(f"{_ESCAPE}{key}", rules)
    return key


def _shaped(label: str, rules: Rules) -> str:
    head, slash, tail = label.partition("/")
    if rules.prefix is None or not slash:
        return _fitted(label, rules.key)
    prefix, name = _fitted(head, rules.prefix), _fitted(tail, rules.key)
    if prefix and name:
        return f"{prefix}/{name}"
    return name or _fitted(head, rules.key)


def _value(value: str, rules: Rules) -> str:
    text = _fitted(value, rules.value)
    if text.lower().startswith(rules.reserved_values):
        return _fitted(f"{_ESCAPE}{text}", rules.value)
    return text


def _fitted(text: str, rule: TextRule) -> str:
    legal = text if rule.ascii.issuperset(text) else _substituted(text, rule)
    return _cut(legal.strip(rule.trimmed), rule).rstrip(rule.trimmed)


def _substituted(text: str, rule: TextRule) -> str:
    if rule.composed:
        text = unicodedata.normalize("NFC", text)
    if rule.folded:
        text = unicodedata.normalize("NFC", text.lower())
    return "".join(character if _allowed(character, rule) else _SUBSTITUTE for character in text)


def _allowed(character: str, rule: TextRule) -> bool:
    if character.isascii():
        return character in rule.ascii
    return ord(character) <= rule.highest and unicodedata.category(character) in rule.beyond


def _cut(text: str, rule: TextRule) -> str:
    if text.isascii():
        return text[: min(rule.most.values())]
    # A character counts at least one in every unit, so few rounds are left below.
    text = text[: max(rule.most.values())]
    while any(_size(text, unit) > most for unit, most in rule.most.items()):
        text = text[:-1]
    return text


def _size(text: str, unit: Unit) -> int:
    match unit:
        case Unit.CHARACTERS:
            return len(text)
        case Unit.UTF16:
            return len(text.encode("utf-16-le")) // 2
        case Unit.BYTES:
            return len(text.encode())
