"""Parses raw objects into values: the trust boundary of the pure core.

Parsing what every input reads, with errors that name a field and never a value.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from function.contract import names
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import RecordStatus
from function.contract.secrets import TokenPlaintext
from function.contract.shape import NameRef
from function.model.call import Lookup
from function.model.facts import XR, Record, Token
from function.model.objects import COUNT, Raw, Shared, mapping, metadata, status

Model = TypeVar("Model", bound=BaseModel)
Read = TypeVar("Read")

_PROJECTS_MAX: Final = 1024
"""Namespaces of which the Project is remembered."""

_KEY_MAX: Final = 63
"""Longest part of a field path that is shown, in characters; keys are the user's."""


def xr(raw: Raw) -> XR:
    """Return the composite's identity; what is absent is empty."""
    head = metadata(raw)
    namespace = str(head.get("namespace", ""))
    return XR(
        api_version=str(raw.get("apiVersion", "")),
        kind=str(raw.get("kind", "")),
        name=str(head.get("name", "")),
        namespace=namespace,
        uid=str(head.get("uid", "")),
        project_id=_project(namespace),
    )


_project = functools.lru_cache(maxsize=_PROJECTS_MAX)(names.project_id)


def record(observed: Raw | None, sought: Lookup) -> Record | None:
    """Return the record, or None without one.

    The reconciler is upgraded on its own, so a field of its status that this version cannot
    read is left out and told, and the others are read.

    Args:
        observed: The one that the XR composes.
        sought: The one looked up by its name: an XR applied again adopts what the one
            before it left, from its first run on.
    """
    raw = sought.raw if observed is None else observed
    if raw is None:
        return None
    written, unreadable = status(raw), None
    try:
        known = RecordStatus.model_validate(written)
    except ValidationError as error:
        unreadable = _fault(error, "ProvisioningRecord.status", Reason.STATUS_UNREADABLE)
        fields = {str(fault["loc"][0]) for fault in error.errors(include_input=False)}
        written = {name: value for name, value in written.items() if name not in fields}
        known = RecordStatus.model_validate(written)
    return Record(
        raw=raw,
        status=known,
        unreadable=unreadable,
        found=observed is None,
    )


def token(secret: Raw | None) -> Token | None:
    """Return the token of a Secret of ours; any other Secret holds none."""
    if secret is None or secret.get("type") != names.TOKEN_SECRET_TYPE:
        return None
    data = mapping(secret.get("data"))
    try:
        text = _decoded(data.get(names.TOKEN_SECRET_KEY, ""))
        number = _decoded(data.get(names.TOKEN_SECRET_GENERATION_KEY, ""))
    except ValueError:
        return None
    if not text or not COUNT.fullmatch(number):
        return None
    return Token(plaintext=TokenPlaintext(text), generation=int(number))


def _decoded(value: object) -> str:
    return base64.b64decode(str(value), validate=True).decode("ascii")


def name_of(reference: object) -> str | None:
    """Return the name in a reference, or None where there is none that could exist."""
    read = readable(NameRef, reference)
    return None if read is None else read.name


def readable(model: type[Model], raw: object) -> Model | None:
    """Return a value as its model, or None where it does not fit."""
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def parsed(
    model: type[Model],
    raw: Mapping[str, Any],
    where: str,
    reason: str = Reason.INVALID_INPUT,
) -> Model:
    """Return a manifest's part as its model.

    Args:
        model: The model it must fit.
        raw: The part.
        where: Path of the part, put before the offending field.
        reason: The reason of the error.

    Raises:
        ContractError: It is unreadable; names the first field and rule, never the value.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise _fault(error, where, reason) from None


def shared(raw: Raw, read: Callable[..., Read], *beside: Shared) -> Read:
    """Return what an object is read as; of one that many calls bring, it is read once.

    Args:
        raw: The object.
        read: A function of a module, of these objects alone. What it raises is not remembered.
        beside: Others that it reads; what is remembered is of the same ones.
    """
    if not isinstance(raw, Shared):
        return read(raw, *beside)
    known, digests = raw.parsed.get(read), tuple(one.digest for one in beside)
    if known is None or known[0] != digests:
        known = raw.parsed[read] = (digests, read(raw, *beside))
    found: Read = known[1]
    return found


def _fault(error: ValidationError, where: str, reason: str) -> ContractError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join((where, *(str(part)[:_KEY_MAX] for part in first["loc"])))
    rule = first["msg"][:1].lower() + first["msg"][1:]
    return ContractError(field=path, rule=rule, reason=reason)
