"""The fields of well-known kinds that take a bootstrap and cloud tags.

The defaults of `Enrol`'s `paths`, by API group and kind. A kind that is not listed is taken
for a blueprint's own, with the seeds' field map. Source: seed 003, "The injected-XR field
map"; the providers' CRDs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

USER_DATA: Final = "userData"
USER_DATA_BASE64: Final = "userDataBase64"
TAGS: Final = "tags"

_USER_DATA: Final = frozenset({USER_DATA, USER_DATA_BASE64})

_SEEDS: Final = {
    USER_DATA: "spec.userData",
    "bootstrapToken": "spec.parameters.helmValues.bootstrapToken",
    "apiUrl": "spec.parameters.helmValues.apiUrl",
    "plexdImage": "spec.parameters.helmValues.plexdImage",
    TAGS: "spec.cloudTags",
}
_SEED_SECRET: Final = "spec.parameters.providerSecret.bootstrapToken"  # noqa: S105 - a path

_KNOWN: Final[tuple[tuple[str, str, Mapping[str, str]], ...]] = (
    (
        r"ec2\.aws\.(m\.)?upbound\.io",
        "Instance",
        {USER_DATA: "spec.forProvider.userData", TAGS: "spec.forProvider.tags"},
    ),
    (
        r"compute\.azure\.(m\.)?upbound\.io",
        "LinuxVirtualMachine",
        {USER_DATA_BASE64: "spec.forProvider.userData", TAGS: "spec.forProvider.tags"},
    ),
    (
        r"compute\.gcp\.(m\.)?upbound\.io",
        "Instance",
        {USER_DATA: "spec.forProvider.metadata[user-data]", TAGS: "spec.forProvider.labels"},
    ),
    (
        r"([a-z0-9-]+\.)*(hcloud|hetzner)(\.[a-z0-9-]+)*",
        "Server",
        {USER_DATA: "spec.forProvider.userData", TAGS: "spec.forProvider.labels"},
    ),
    (
        r"compute\.openstack\.(m\.)?([a-z0-9-]+\.)*[a-z]+",
        "InstanceV2",
        {USER_DATA: "spec.forProvider.userData", TAGS: "spec.forProvider.metadata"},
    ),
    (
        r"helm\.(m\.)?crossplane\.io",
        "Release",
        {
            "bootstrapToken": "spec.forProvider.values.bootstrapToken",
            "apiUrl": "spec.forProvider.values.apiUrl",
            "plexdImage": "spec.forProvider.values.plexdImage",
        },
    ),
)


def takes_user_data(group: str, kind: str) -> bool:
    """Whether a kind is listed as one that takes user data: it is a machine's."""
    return any(
        known == kind and _USER_DATA & paths.keys() and re.fullmatch(pattern, group)
        for pattern, known, paths in _KNOWN
    )


def defaults(group: str, kind: str, *, provider_secret: bool) -> dict[str, str]:
    """Return the field paths of a kind, by the field's name.

    Args:
        group: Its API group.
        kind: Its kind.
        provider_secret: The strategy is `provider-secret`, whose token has a place of its own.
    """
    for pattern, known, paths in _KNOWN:
        if known == kind and re.fullmatch(pattern, group):
            return dict(paths)
    return {**_SEEDS, "bootstrapToken": _SEED_SECRET} if provider_secret else dict(_SEEDS)
