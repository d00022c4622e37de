"""The rules of `deploy/policies` by digest; `make generate` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DIGESTS: Final[Mapping[str, str]] = {
    "plexsphere-hold": "206a907203a4ad694c399d0707be4bf49378c8a8d932677559fc06cefa78f1f6",
    "plexsphere-hold-children": "257557cc4c7267e3f8f3370ae4592e4927b99e25ae41cd773ec4e72ee3983277",
    "plexsphere-hold-records": "801803604ab491d68a5fdcdc5d9be0954f59941cb27e8a650eccab0f1bf017d8",
}
