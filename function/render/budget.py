"""How much user data each cloud takes, checked before anything exists.

Belongs here: the limits. Not here: how a document is made smaller.
Source: peers §3.3, "User-data limits".
"""

from __future__ import annotations

from typing import Final

from function.contract.errors import ContractError
from function.contract.strategy import CloudProvider

LIMITS_BYTES: Final = {
    CloudProvider.AWS: 16_384,
    CloudProvider.AZURE: 65_535,
    CloudProvider.GCP: 262_144,
    CloudProvider.HETZNER: 32_768,
    CloudProvider.OPENSTACK: 49_149,
    CloudProvider.GENERIC: 16_384,
}
"""Raw bytes. Nova counts base64, at most 65,535 characters, which is 16,383 groups of three
bytes; an unknown cloud gets the smallest known limit."""


def check(provider: CloudProvider, document: str) -> None:
    """Check a document against its cloud's limit.

    Raises:
        ContractError: It is larger; the message names the limit and both sizes.
    """
    size, limit = len(document.encode()), LIMITS_BYTES[provider]
    if size > limit:
        rule = f"holds {size} bytes, but {provider} takes at most {limit}"
        raise ContractError(field="spec.userData", rule=rule, reason="UserDataTooLarge")
