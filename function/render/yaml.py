"""A YAML dump that is the same for equal input and reads the same everywhere.

Belongs here: the one dumper. Not here: what is dumped. PyYAML leaves strings such as `y`,
`08` or `1e3` plain, and readers of YAML 1.1, 1.2 and Go disagree about them; so a string
is plain only where no reader can take it for anything else.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_AMBIGUOUS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"})
_UNFOLDED: Final = 2**31 - 1
"""Line width: no line is ever folded, so that a token or URL stays greppable."""


class Shared(str):
    """Text that stands once: where one object is dumped again, an alias of the first stands.

    On one line, because a block's indentation would cost bytes on each of its lines.
    """

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return not isinstance(data, Shared)

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


def _shared(dumper: yaml.SafeDumper, value: Shared) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style='"')


_Dumper.add_representer(str, _string)
_Dumper.add_representer(Shared, _shared)


def dump(value: dict[str, Any]) -> str:
    """Return a mapping as YAML: keys in the given order, text of several lines as a block."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_UNFOLDED, allow_unicode=True)
