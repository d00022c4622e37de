"""The OpenAPI 3.1 document of the node listener.

Turning the table of operations and the models of their bodies into the document. The
listener itself does not serve it. Source: OpenAPI Specification 3.1.1; contracts §1.3 to
§1.6.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from http import HTTPStatus
from itertools import groupby
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    models_json_schema,
)
from pydantic_core.core_schema import WithDefaultSchema

from reconciler.adapters.http import problem
from reconciler.adapters.http.node.node_operations import OPERATIONS, Operation
from reconciler.domain.identity.denial import Denial

CONTRACT_VERSION: Final = "2.0.0"
"""Of the node contract, the second one; not of this program."""

_REF: Final = "#/components/schemas/{model}"
_SHARED: Final = "#/components/responses/{name}"
_PARAMETER: Final = re.compile(r"{(\w+)}")
_BEARER: Final = "nodeBearer"
_REQUEST_ID: Final = {"type": "string", "format": "uuid"}
_SECONDS: Final = {"type": "integer", "minimum": 1}


class _Schemas(GenerateJsonSchema):
    """Without titles that repeat names, and defaults that are ours and not the wire's."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's
        return False

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def document() -> dict[str, Any]:
    """Return the document; equal operations give equal documents."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    shared = _share(paths)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Node enrolment",
            "version": CONTRACT_VERSION,
            "summary": "The API of the control plane for nodes.",
            "description": (
                "Bodies hold at most 16 KiB of JSON, without content encoding, unknown or "
                "duplicate fields. Operations that only answer 501 are part of the contract and "
                "not served. An address above its rate limit gets 429 before any other answer, a "
                "Project above its rate limit gets 429 instead of a 201."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": shared,
            "securitySchemes": {
                _BEARER: {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "nsk_<env>_<base64url of 16 bytes node id and 32 bytes key>",
                }
            },
        },
    }


def _share(paths: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Replace responses that stand more than once by references; return what they refer to."""
    uses: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in paths.values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                uses[f"{status} {json.dumps(response)}"].append(operation["responses"])
    shared: dict[str, Any] = {}
    for use, places in uses.items():
        if len(places) == 1:
            continue
        status, _, response = use.partition(" ")
        same_status = sum(name.startswith(f"Refused{status}") for name in shared)
        name = f"Refused{status}" + (f"_{same_status + 1}" if same_status else "")
        shared[name] = json.loads(response)
        for responses in places:
            responses[status] = {"$ref": _SHARED.format(name=name)}
    return shared


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "security": [{_BEARER: []}] if operation.authenticated else [],
    }
    if operation.served:
        described["description"] = f"Checked in this order: {_order(operation)}."
    parameters = [_parameter(name) for name in _PARAMETER.findall(operation.path)]
    if parameters:
        described["parameters"] = parameters
    if operation.request is not None:
        described["requestBody"] = {"required": True, "content": _json(operation.request)}
    described["responses"] = _responses(operation)
    return described


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    if operation.reply is not None:
        responses[str(operation.status.value)] = {
            "description": operation.status.phrase,
            "content": _json(operation.reply),
        }
    by_status = sorted(operation.problems, key=lambda refusal: refusal.status)
    for status, refusals in groupby(by_status, key=lambda refusal: refusal.status):
        responses[str(status)] = _refusal(status, tuple(refusals))
    return responses


def _refusal(status: int, refusals: tuple[Denial, ...]) -> dict[str, Any]:
    headers: dict[str, Any] = {
        problem.CORRELATION: {"description": "Identifies this request.", "schema": _REQUEST_ID}
    }
    if any(refusal.retry_after_s is not None for refusal in refusals):
        headers["Retry-After"] = {
            "description": "Seconds to wait before the next attempt.",
            "schema": _SECONDS,
        }
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = {"schema": {"type": "string", "const": "Bearer"}}
    return {
        "description": _sentences(refusals),
        "headers": headers,
        "content": {problem.CONTENT_TYPE: {"schema": _problem(status, refusals)}},
    }


def _problem(status: int, refusals: tuple[Denial, ...]) -> dict[str, Any]:
    codes = sorted({refusal.code for refusal in refusals if refusal.code and refusal.told})
    members: dict[str, Any] = {"status": {"const": status}}
    # Where no refusal of a status has a code, its document has none.
    members["code"] = {"enum": codes} if codes else False
    narrowed: dict[str, Any] = {"properties": members}
    if all(refusal.code and refusal.told for refusal in refusals):
        narrowed["required"] = ["code"]
    return {"allOf": [{"$ref": _REF.format(model=problem.Problem.__name__)}, narrowed]}


def _order(operation: Operation) -> str:
    return ", ".join(
        f"{refusal.status} `{refusal.code}`" if refusal.code and refusal.told
        else str(refusal.status)
        for refusal in (*operation.asked_first, *operation.refusals)
    )  # fmt: skip


def _sentences(refusals: Iterable[Denial]) -> str:
    lines = (
        f"`{refusal.code}`: {refusal.detail}." if refusal.code and refusal.told
        else f"{refusal.detail[0].upper()}{refusal.detail[1:]}."
        for refusal in refusals
    )  # fmt: skip
    return "\n".join(dict.fromkeys(lines))


def _parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string"}
    if name == "node_id":
        schema["format"] = "uuid"
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _schemas() -> dict[str, Any]:
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(problem.Problem, "serialization")]
    for operation in OPERATIONS:
        if operation.request is not None:
            models.append((operation.request, "validation"))
        if operation.reply is not None:
            models.append((operation.reply, "serialization"))
    _, schemas = models_json_schema(models, ref_template=_REF, schema_generator=_Schemas)
    defined: dict[str, Any] = schemas["$defs"]
    return dict(sorted(defined.items()))
