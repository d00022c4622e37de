"""Dumps YAML that is byte for byte the same for equal input.

The one dumper. PyYAML leaves strings such as `y`, `08` or `1e3` plain, and readers of YAML
1.1, 1.2 and Go disagree about them; so a string is plain only where no reader can take it
for anything else.

PyYAML's emitter looks at every character in Python and took four fifths of the time of a
new node. What our documents are made of is written directly; anything else, and the proof
that both write the same bytes, is PyYAML's.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_AMBIGUOUS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"})
_UNFOLDED: Final = 2**31 - 1
"""Line width: no line is ever folded, so that a token or URL stays greppable."""


class SharedText(str):
    """Text that stands once: where one object is dumped again, an alias of the first stands.

    On one line, because a block's indentation would cost bytes on each of its lines.
    """

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return not isinstance(data, SharedText)

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - PyYAML's signature
        """Indent sequences below their key, as people write them."""
        del indentless
        super().increase_indent(flow=flow, indentless=False)


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style: str | None = "'"
    if not all(character == "\n" or character.isprintable() for character in value):
        # Some readers take further characters, such as U+0085, for line ends.
        style = '"'
    elif "\n" in value:
        style = "|"
    elif _PLAIN.fullmatch(value) and value.lower() not in _AMBIGUOUS:
        style = None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _shared(dumper: yaml.SafeDumper, value: SharedText) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style='"')


_Dumper.add_representer(str, _string)
_Dumper.add_representer(SharedText, _shared)


_KEY_MAX: Final = 100
"""Longest key written directly, in characters; PyYAML writes long ones in another form."""

_QUOTABLE: Final = re.compile(r"[ -~]*")
_BLOCK: Final = re.compile(r"[!-~][ -~]*(?:\n[ -~]*)*")


class _NotDirectError(Exception):
    """A value that PyYAML has to write."""


def dump(value: dict[str, Any]) -> str:
    """Return a mapping as YAML: keys in the given order, text of several lines as a block."""
    lines: list[str] = []
    try:
        _mapping(lines, value, "", "")
    except _NotDirectError:
        return yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, width=_UNFOLDED, allow_unicode=True
        )
    return "\n".join([*lines, ""])


def _mapping(lines: list[str], value: dict[str, Any], first: str, rest: str) -> None:
    """Write a mapping, its first line after one text and the others after another."""
    if not value:
        raise _NotDirectError
    for key, item in value.items():
        if type(key) is not str or not 0 < len(key) <= _KEY_MAX:
            raise _NotDirectError
        head = f"{first}{_inline(key)}:"
        first = rest
        if type(item) is dict and item:
            lines.append(head)
            _mapping(lines, item, f"{rest}  ", f"{rest}  ")
        elif type(item) is list and item:
            lines.append(head)
            _sequence(lines, item, f"{rest}  ")
        else:
            _leaf(lines, head, item, rest)


def _sequence(lines: list[str], value: list[Any], indent: str) -> None:
    for item in value:
        if type(item) is dict:
            _mapping(lines, item, f"{indent}- ", f"{indent}  ")
        elif type(item) is list and item:
            nested: list[str] = []
            _sequence(nested, item, f"{indent}  ")
            nested[0] = f"{indent}- {nested[0].lstrip(' ')}"
            lines.extend(nested)
        else:
            _leaf(lines, f"{indent}-", item, indent)


def _leaf(lines: list[str], head: str, value: object, indent: str) -> None:
    if type(value) is not str or "\n" not in value:
        lines.append(f"{head} {_inline(value)}")
        return
    # PyYAML folds no block out of lines that end in a blank, nor keeps several last ends.
    if not _BLOCK.fullmatch(value) or " \n" in value or value.endswith((" ", "\n\n")):
        raise _NotDirectError
    ends = value.endswith("\n")
    lines.append(f"{head} |" if ends else f"{head} |-")
    inner = f"{indent}  "
    lines.extend(f"{inner}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))


def _inline(value: object) -> str:
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is not str or not _QUOTABLE.fullmatch(value):
        raise _NotDirectError
    if _PLAIN.fullmatch(value) and value.lower() not in _AMBIGUOUS:
        return value
    return "'" + value.replace("'", "''") + "'"
