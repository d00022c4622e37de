"""The limit of each cloud on user data, checked before anything is created.

The limits, what each of them counts, and the choice between a document as it is, made
smaller, and refused. Source: peers §3.3, "User-data limits".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any, Final, assert_never

from function.contract.errors import ContractError
from function.contract.strategy import CloudProvider
from function.render.documents import cloudinit, compressed

FIELD: Final = "spec.userData"
TOO_LARGE: Final = "UserDataTooLarge"


@unique
class Counted(StrEnum):
    """The form of a document whose bytes a cloud counts."""

    RAW = "raw"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most user data of one cloud.

    Attributes:
        most_bytes: Largest size that is taken.
        counted: What the size is one of.
    """

    most_bytes: int
    counted: Counted = Counted.RAW

    def size(self, document: str) -> int:
        """Return how many bytes of the limit a document uses."""
        raw = len(document.encode())
        match self.counted:
            case Counted.RAW:
                return raw
            case Counted.BASE64:
                return (raw + 2) // 3 * 4
            case _:
                assert_never(self.counted)


LIMITS: Final[Mapping[CloudProvider, Limit]] = {
    CloudProvider.AWS: Limit(most_bytes=16_384),
    CloudProvider.AZURE: Limit(most_bytes=65_535),
    CloudProvider.GCP: Limit(most_bytes=262_144),
    CloudProvider.HETZNER: Limit(most_bytes=32_768),
    CloudProvider.OPENSTACK: Limit(most_bytes=65_535, counted=Counted.BASE64),
    CloudProvider.GENERIC: Limit(most_bytes=16_384),
}
"""EC2 counts before base64, Azure after decoding it, Nova the base64 itself; an unknown
cloud gets the smallest known limit."""


def fit(provider: CloudProvider, body: Mapping[str, Any]) -> str:
    """Return a body as the document for its cloud.

    Within the limit it is the plain document. Beyond, it is made smaller, and stays a
    text that begins with `#cloud-config`: the function writes `spec.userData`, does not
    know whether the field at the end of a Composition wants text or base64, and every
    cloud takes text.

    Raises:
        ContractError: It is too large even so; the message names the limit and both sizes.
    """
    limit = LIMITS[provider]
    plain = cloudinit.document(body)
    if limit.size(plain) <= limit.most_bytes:
        return plain
    small = cloudinit.document(compressed.compressed(body))
    if limit.size(small) <= limit.most_bytes:
        return small
    form = " of base64" if limit.counted is Counted.BASE64 else ""
    rule = (
        f"holds {limit.size(plain)} bytes{form} and {limit.size(small)} compressed, "
        f"but {provider} accepts at most {limit.most_bytes}"
    )
    raise ContractError(field=FIELD, rule=rule, reason=TOO_LARGE)
