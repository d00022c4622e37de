"""The annotation by which an operator gives a node up that cannot leave the mesh.

Reading it and its rules. Source: docs/decisions/0007; design §2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from function.contract import names
from function.contract.conditions import Reason
from reconciler.domain.aggregate.explanation import Explanation

REASON_MAX: Final = 512
"""Longest reason in characters: a sentence and a ticket, and it fits an Event."""

_FIELD: Final = f"metadata.annotations[{names.ANNOTATION_FORCE_RELEASE}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceRelease:
    """A wish to skip the deregistration of a record's node.

    Attributes:
        reason: Why, in the words of who set it; one printable line, 1 to REASON_MAX.
        actor: The field manager that set it, such as `kubectl-annotate`; None when the
            object does not tell. The API server's audit log knows the user.
    """

    reason: str
    actor: str | None


def read(metadata: Mapping[str, Any]) -> ForceRelease | Explanation | None:
    """Read the annotation of a record.

    Returns:
        The wish; why it is none, naming field and rule and not the value; or None where
        the annotation is absent.
    """
    text = (metadata.get("annotations") or {}).get(names.ANNOTATION_FORCE_RELEASE)
    if text is None:
        return None
    reason = str(text).strip()
    if not reason:
        return _unusable("must give a reason")
    if len(reason) > REASON_MAX:
        return _unusable(f"must be at most {REASON_MAX} characters")
    if not reason.isprintable():
        return _unusable("must be one line of printable characters")
    return ForceRelease(reason=reason, actor=_manager(metadata))


def _unusable(rule: str) -> Explanation:
    return Explanation(reason=Reason.FORCE_RELEASE_INVALID, message=f"{_FIELD}: {rule}.")


def _manager(metadata: Mapping[str, Any]) -> str | None:
    field = f"f:{names.ANNOTATION_FORCE_RELEASE}"
    for entry in metadata.get("managedFields") or []:
        owned = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        if field in (owned.get("f:annotations") or {}):
            return str(entry.get("manager") or "") or None
    return None
