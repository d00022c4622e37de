"""Checks declared labels.

The rule, pure and total; the function applies it for early answers, the reconciler for the
authoritative one. Source: kinds.md; contracts §6 item 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from function.contract import limits
from function.contract.errors import ContractError
from function.contract.record import LABELS_MAX

LABEL_MAX_BYTES: Final = 256
"""Longest label key or value (kinds.md)."""


def checked_labels(declared: Mapping[str, Any]) -> dict[str, str]:
    """Return the declared labels checked and in key order.

    Raises:
        ContractError: Too many labels, a key or value that is no string, or too long.
    """
    if len(declared) > LABELS_MAX:
        raise ContractError(field="spec.labels", rule=f"must hold at most {LABELS_MAX} labels")
    checked: dict[str, str] = {}
    for key in sorted(declared):
        value = declared[key]
        if not isinstance(value, str):
            raise ContractError(field=f"spec.labels[{key[:63]}]", rule="must be a string")
        if limits.UNSTORABLE in key or limits.UNSTORABLE in value:
            # The key is not repeated where it is what cannot be shown.
            field = "spec.labels" if limits.UNSTORABLE in key else f"spec.labels[{key[:63]}]"
            raise ContractError(field=field, rule=limits.UNSTORABLE_RULE)
        if max(len(key.encode()), len(value.encode())) > LABEL_MAX_BYTES or not key:
            rule = f"must have a key and at most {LABEL_MAX_BYTES} bytes"
            raise ContractError(field=f"spec.labels[{key[:63]}]", rule=rule)
        checked[key] = value
    return checked
