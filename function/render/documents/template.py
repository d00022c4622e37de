"""The document that one machine gets, rendered once for all the tokens it may be given.

What of a document is remembered. What is remembered was rendered with a stand-in and never
held a token. Source: docs/decisions/0010.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from function.contract.secrets import TokenPlaintext
from function.contract.strategy import CloudProvider, DocumentForm
from function.render.documents import budget, cloudinit, compressed

_REMEMBERED_MAX: Final = 512
"""Documents, of some 3 KiB each: the machines that are waited for at a time."""

_CA_MAX: Final = 8 * 1024
"""Longest CA bundle in a document that is remembered, in characters: it stands there twice."""

_OURS: Final = re.compile(r"psb_[a-z]{1,16}_[a-z2-7]{26}_(?:node|bridge)_[a-z2-7]{20,64}")
"""Tokens as we mint them, of which one stands for any other of its length: YAML quotes none.
Source: contracts §1.3, the token's text."""

_HEAD_AND_TAIL: Final = 2
"""What a document is parted into by what stands there once."""

_Said = tuple[str | None, str | None, str | None, str, str, DocumentForm]


def text(provider: CloudProvider, enrolment: cloudinit.DocumentFields) -> str:
    """Return the document of a machine, as its cloud takes it.

    Raises:
        ContractError: A value is missing or breaks its rule, or the document is larger than
            the cloud takes.
    """
    token = cloudinit.plaintext(enrolment.token)
    if _OURS.fullmatch(token) and len(enrolment.ca_bundle or "") <= _CA_MAX:
        around = _around(
            provider,
            (
                enrolment.base_url,
                enrolment.plexd_download_url,
                enrolment.ca_bundle,
                enrolment.project_id,
                enrolment.handle,
                enrolment.form,
            ),
            tuple(sorted(enrolment.plexd_sha256.items())),
            len(token),
        )
        if len(around) == _HEAD_AND_TAIL:
            return token.join(around)
    return budget.fit(provider, cloudinit.body(enrolment))


def _packed(text: str) -> bool:
    """Whether a document was made smaller: then a token may be in it unseen."""
    return compressed.ENCODING in text


@functools.lru_cache(maxsize=_REMEMBERED_MAX)
def _around(
    provider: CloudProvider, said: _Said, sums: tuple[tuple[str, str], ...], length: int
) -> list[str]:
    """Return what stands before and after the token in a document; errors are found again."""
    stand_in = "psb_".ljust(length, "x")
    base_url, download_url, ca_bundle, project_id, handle, form = said
    enrolment = cloudinit.DocumentFields(
        base_url=base_url,
        plexd_download_url=download_url,
        plexd_sha256=dict(sums),
        ca_bundle=ca_bundle,
        project_id=project_id,
        handle=handle,
        token=TokenPlaintext(stand_in),
        form=form,
    )
    made = budget.fit(provider, cloudinit.body(enrolment))
    # One token may pack smaller than another.
    return [] if _packed(made) else made.split(stand_in)
