"""CEL rules that hold a CIDR to what Python's `ipaddress` takes as a network.

What the schema's format `cidr` leaves open. CEL's own functions for addresses need
Kubernetes 1.31; the floor is 1.30.
"""

from __future__ import annotations

from typing import Final

_LENGTH: Final = "int(self.split('/')[1])"
_MESSAGE: Final = "must not have host bits set"

_V4: Final = (
    r"!self.matches('^[0-9]{1,3}([.][0-9]{1,3}){3}/[0-9]+$') || [0, 1, 2, 3].all(i, "
    "int(self.split('/')[0].split('.')[i]) % [1, 2, 4, 8, 16, 32, 64, 128, 256]["
    f"{_LENGTH} >= 8 * (i + 1) ? 0 : "
    f"{_LENGTH} <= 8 * i ? 8 : 8 * (i + 1) - {_LENGTH}] == 0)"
)

_HEAD: Final = "self.split('/')[0].split('::')[0].split(':')"
_TAIL: Final = "self.split('/')[0].split('::')[1].split(':')"

# The digits of the group that holds nibble n; those that `::` stands for are zero, and an end
# of the address without digits splits into one empty group, which counts as zero too.
_GROUP: Final = (
    f"(n / 4 < {_HEAD}.size() ? {_HEAD}[n / 4] : "
    f"n / 4 >= 8 - {_TAIL}.size() ? {_TAIL}[n / 4 - 8 + {_TAIL}.size()] : '0')"
)

_V6: Final = (
    "!self.matches('^[0-9a-fA-F:]+/[0-9]+$') || "
    f"{list(range(32))}.all(n, '0123456789abcdef'.indexOf("
    f"('0000' + {_GROUP}).lowerAscii().charAt({_GROUP}.size() + n % 4)) % "
    f"[1, 2, 4, 8, 16][{_LENGTH} >= 4 * (n + 1) ? 0 : "
    f"{_LENGTH} <= 4 * n ? 4 : 4 * (n + 1) - {_LENGTH}] == 0)"
)

RULES: Final = (
    {
        "rule": "!self.matches(':.*[.]')",
        "message": "must not hold an IPv4 address inside an IPv6 one",
    },
    {"rule": _V4, "message": _MESSAGE},
    {"rule": _V6, "message": _MESSAGE},
)
"""Validations of a string with format `cidr`."""
