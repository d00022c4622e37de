"""The definitions of the function's inputs, which a Composition's steps are checked with.

One value per input, and the frame around its schema. They are never installed in a cluster:
the Function's package carries them, and `crossplane resource validate` reads them. Source:
kinds.md, "The function's inputs"; reference, crossplane §1.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from dev.crds.manifest import dumped, overlaid
from dev.crds.rules import Overlay
from dev.crds.schema import Schema, structural
from function.contract import names
from function.inputs import declare, enrol_schema

HEADER: Final = (
    "# Generated from the inputs' models by `python -m dev.crds`; edit the models instead.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input of the function.

    Attributes:
        kind: CamelCase kind; singular and plural derive from it.
        description: what a step with it does.
        model: what its authors write.
        overlays: as `Kind.overlays`.
    """

    kind: str
    description: str
    model: type[BaseModel]
    overlays: Mapping[str, Overlay] = field(default_factory=dict)

    @property
    def plural(self) -> str:
        """The plural, which names the definition."""
        return f"{self.kind.lower()}s"


_URL: Final[Overlay] = {"pattern": "^https?://"}

_ENROLMENT: Final[Mapping[str, Overlay]] = {
    "enrolment.baseURL": _URL,
    "enrolment.plexdDownloadURL": _URL,
}

_UNIQUE: Final = {
    "rule": "self.all(one, self.exists_one(other, other.name == one.name))",
    "message": "names must be unique",
}
_HELD: Final = {
    "rule": (
        "self.all(one, !has(one.hold) || one.hold.all(held, !self.exists(other, "
        "other.name == held || (other.name.endsWith('*') && "
        "held.startsWith(other.name.substring(0, other.name.size() - 1))))))"
    ),
    "message": "hold must not name an enrolled resource",
}
"""What the model's own validator says; a list's keys are for the API server only."""

_PATH: Final[Overlay] = {"pattern": r"^spec[.\[]"}

DECLARE: Final = Input(
    kind=declare.KIND,
    description=(
        "Composes a ProvisionedResource: a provisioning record and, once the reconciler "
        "accepted it, the blueprint's own composite resource."
    ),
    model=declare.DeclareInput,
    overlays=_ENROLMENT,
)

ENROL: Final = Input(
    kind="Enrol",
    description=(
        "Makes nodes of resources that earlier steps composed. Each gets a provisioning record, "
        "is withheld until the reconciler accepted that, and leaves the mesh before it goes."
    ),
    model=enrol_schema.EnrolInput,
    overlays={
        **_ENROLMENT,
        "resources": {"x-kubernetes-validations": [_UNIQUE, _HELD]},
        "resources[].labelsFrom": _PATH,
        **{
            f"resources[].paths.{name}": _PATH
            for name in enrol_schema.EnrolPaths.model_json_schema()["properties"]
        },
    },
)

INPUTS: Final = (DECLARE, ENROL)


def file_name(given: Input) -> str:
    """Name an input's file in `package/input`."""
    return f"{names.INPUT_GROUP}_{given.plural}.yaml"


def definition(given: Input) -> dict[str, Any]:
    """Return the definition of an input.

    Raises:
        SchemaError: a model or an overlay has no structural form.
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{given.plural}.{names.INPUT_GROUP}"},
        "spec": {
            "group": names.INPUT_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": given.kind,
                "listKind": f"{given.kind}List",
                "plural": given.plural,
                "singular": given.kind.lower(),
                "categories": ["crossplane"],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _schema(given)},
                }
            ],
        },
    }


def text(given: Input) -> str:
    """Return an input's definition as YAML; equal input gives equal bytes."""
    return f"{HEADER}---\n{dumped(definition(given))}"


def _schema(given: Input) -> Schema:
    schema = structural(given.model, defaults=True)
    schema["description"] = given.description
    # Kubernetes knows what an object's metadata is and takes no other schema for it.
    schema["properties"]["metadata"] = {"type": "object"}
    return overlaid(schema, given.overlays)
