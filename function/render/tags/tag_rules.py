"""The rules of each cloud for tags, as data.

Alphabets, lengths in the unit the cloud counts, counts, reserved prefixes.

Where a cloud's documents leave room, the narrower reading stands: a tag that is refused
keeps a machine from being created, one that is altered is reported.
Source: contracts §5; docs/decisions/0008, which names each provider's document.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

from function.contract.strategy import CloudProvider


@unique
class Unit(StrEnum):
    """The unit of a length."""

    CHARACTERS = "characters"
    UTF16 = "UTF-16 units"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRule:
    """The rule for a key, its prefix or a value.

    Attributes:
        phrase: The rule in words, to follow "must hold".
        ascii: The ASCII characters it may hold; `_` is always one of them.
        beyond: Unicode general categories it may hold beyond ASCII.
        highest: Highest code point.
        folded: Whether it must be lower case.
        composed: Whether to compose it first, because lone combining marks are illegal.
        trimmed: Characters that may not stand at an end; None means white space, which
            the clouds' own tools take off, so that it would come back as drift.
        most: Longest, in each unit that is limited.
    """

    phrase: str
    ascii: frozenset[str]
    beyond: frozenset[str] = frozenset()
    highest: int = 0x10FFFF
    folded: bool = False
    composed: bool = True
    trimmed: str | None = None
    most: Mapping[Unit, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The tag rules of one cloud for one resource.

    Attributes:
        key: For keys; for their last part where `prefix` is one.
        value: For values.
        prefix: For what may stand before a key's only `/`; None where there is no such
            form.
        starts_with_letter: Whether a key must.
        reserved: Lower-case prefixes that no key may have in any case.
        reserved_values: Likewise for values.
        caseless: Whether keys that differ in case are one key.
        most_tags: Most tags, without those that others add.
        most_in_all: Most characters of all keys and values together; None: unlimited.
    """

    key: TextRule
    value: TextRule
    prefix: TextRule | None = None
    starts_with_letter: bool = False
    reserved: tuple[str, ...] = ()
    reserved_values: tuple[str, ...] = ()
    caseless: bool = False
    most_tags: int
    most_in_all: int | None = None


CROSSPLANE_TAGS: Final = 5
"""Tags that crossplane-runtime knows for one managed resource: its kind, name, namespace,
provider config and that one's kind. Upjet providers add three of them today."""

_CROSSPLANE: Final = "crossplane-"
"""What their keys begin with: a label of that name would be overwritten."""

_LETTERS_DIGITS: Final = frozenset(string.ascii_letters + string.digits)
_LOWER_DIGITS: Final = frozenset(string.ascii_lowercase + string.digits)
_PRINTABLE: Final = frozenset(map(chr, range(0x20, 0x7F)))
_LETTERS: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"})
_NUMBERS: Final = frozenset({"Nd", "Nl", "No"})
_MARKS: Final = frozenset({"Mn", "Mc", "Me"})
_SIGNS: Final = frozenset({"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"})
_SPACES: Final = frozenset({"Zs"})


def _aws(longest: int) -> TextRule:
    return TextRule(
        phrase=f"letters, digits, spaces and + - = . _ : / @, at most {longest} of them",
        ascii=_LETTERS_DIGITS | frozenset(" +-=._:/@"),
        beyond=_LETTERS | _NUMBERS | _SPACES,
        most={Unit.UTF16: longest},
    )


def _azure(phrase: str, alphabet: frozenset[str], longest: int) -> TextRule:
    text = f"{phrase}, at most {longest} of them"
    return TextRule(phrase=text, ascii=alphabet, most={Unit.CHARACTERS: longest})


_GCP: Final = TextRule(
    phrase="lower-case letters, digits, _ and -, at most 63 of them and 127 bytes",
    ascii=_LOWER_DIGITS | frozenset("_-"),
    beyond=frozenset({"Ll", "Lo"}) | _NUMBERS,
    folded=True,
    trimmed="",
    most={Unit.CHARACTERS: 63, Unit.BYTES: 127},
)


def _hetzner(longest: int) -> TextRule:
    return TextRule(
        phrase=f"letters, digits and, between them, - _ ., at most {longest} of them",
        ascii=_LETTERS_DIGITS | frozenset("-_."),
        trimmed="-_.",
        most={Unit.CHARACTERS: longest},
    )


_NOVA_MOST: Final = 255
_NOVA_KEY: Final = TextRule(
    phrase=f"letters, digits, spaces and - _ : ., at most {_NOVA_MOST} of them",
    ascii=_LETTERS_DIGITS | frozenset("-_:. "),
    most={Unit.CHARACTERS: _NOVA_MOST},
)
_NOVA_VALUE: Final = TextRule(
    phrase=f"printable characters up to U+FFFF, at most {_NOVA_MOST} of them",
    ascii=_PRINTABLE,
    beyond=_LETTERS | _MARKS | _NUMBERS | _SIGNS | _SPACES,
    highest=0xFFFF,
    composed=False,
    most={Unit.CHARACTERS: _NOVA_MOST},
)
_COMMON: Final = TextRule(
    phrase="lower-case letters, digits and, between them, _ -, at most 63 of them",
    ascii=_LOWER_DIGITS | frozenset("_-"),
    folded=True,
    trimmed="_-",
    most={Unit.CHARACTERS: 63},
)

_AZURE_IN_ALL: Final = 2048 - 512
"""Of a virtual machine's 2,048 characters a quarter is left to Crossplane's own tags: 105
for their keys; their values are names of at most 63 and kinds of some 90."""

RULES: Final[Mapping[CloudProvider, Rules]] = {
    CloudProvider.AWS: Rules(
        key=_aws(128),
        value=_aws(256),
        reserved=("aws:", _CROSSPLANE),
        reserved_values=("aws:",),
        most_tags=50 - CROSSPLANE_TAGS,
    ),
    # ASCII alone: other text is legal, but Microsoft warns that it can break the decoding
    # of instance metadata, which is where a machine's user data comes from.
    CloudProvider.AZURE: Rules(
        key=_azure("printable ASCII without < > % & \\ ? /", _PRINTABLE - set("<>%&\\?/"), 512),
        value=_azure("printable ASCII", _PRINTABLE, 256),
        reserved=("azure", "microsoft", "windows", _CROSSPLANE),
        caseless=True,
        most_tags=50 - CROSSPLANE_TAGS,
        most_in_all=_AZURE_IN_ALL,
    ),
    # One more is left for `goog-terraform-provisioned`, which upjet's engine may add.
    CloudProvider.GCP: Rules(
        key=_GCP,
        value=_GCP,
        starts_with_letter=True,
        reserved=("goog-", "google-", _CROSSPLANE),
        most_tags=64 - CROSSPLANE_TAGS - 1,
    ),
    # No count is documented; 64 is the most labels that a resource of ours declares.
    CloudProvider.HETZNER: Rules(
        key=_hetzner(63),
        value=_hetzner(63),
        prefix=_hetzner(255),
        reserved=("hetzner.cloud/", _CROSSPLANE),
        most_tags=64,
    ),
    # Caseless and without what MySQL's three-byte UTF-8 lacks: Nova's usual database
    # compares keys so. 128 is the default of the quota `metadata_items`.
    CloudProvider.OPENSTACK: Rules(
        key=_NOVA_KEY,
        value=_NOVA_VALUE,
        reserved=(_CROSSPLANE,),
        caseless=True,
        most_tags=128 - CROSSPLANE_TAGS,
    ),
    # What all of the others accept, and the smallest count and size.
    CloudProvider.GENERIC: Rules(
        key=_COMMON,
        value=_COMMON,
        starts_with_letter=True,
        reserved=("azure", "goog-", "google-", "microsoft", "windows", _CROSSPLANE),
        most_tags=50 - CROSSPLANE_TAGS,
        most_in_all=_AZURE_IN_ALL,
    ),
}
