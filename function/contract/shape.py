"""The pydantic base of every kind, and the pieces several kinds share.

The base model and reference shapes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="Name of a Kubernetes object.",
    ),
]

Later = Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")]
"""Name of an object that may still be to come, and is empty until then."""

WireText = Annotated[str, Field(max_length=253)]
"""Names, kinds and ids as other objects hold them; 253 is Kubernetes' longest name."""
UrlText = Annotated[str, Field(max_length=2048)]
LabelText = Annotated[str, Field(max_length=256)]
Sha256 = Annotated[str, Field(max_length=64, pattern=r"^[0-9a-f]{64}$")]


class Shape(BaseModel):
    """A frozen piece of a manifest; fields are camelCase on the wire.

    Unknown fields are ignored: the API server prunes or keeps them, and a newer writer
    must not break an older reader.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )


class NameRef(Shape):
    """A reference by name."""

    name: ObjectName
