"""The schema that the inputs of both kinds share.

The strict base of an input's model and the knobs that every input takes.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from function.contract.registration import Registration

API_VERSION_SAYS: Final = "Group and version of this input's schema."
KIND_SAYS: Final = "Which of the function's inputs this is."
"""Descriptions of what every input begins with."""


class StrictInput(BaseModel):
    """A frozen piece of an input; a field that it does not know is an error.

    A misspelt field that is ignored would leave a node without what its author meant.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class InputRegistration(Registration):
    """The step's policy for a node that does not register in time."""

    model_config = ConfigDict(extra="forbid")


class InputEnrolment(StrictInput):
    """Knobs of the enrolment material; those in the record's status win, field by field."""

    base_url: str | None = Field(
        default=None,
        alias="baseURL",
        max_length=2048,
        description="Absolute http(s) URL at which a node registers.",
    )
    plexd_download_url: str | None = Field(
        default=None,
        alias="plexdDownloadURL",
        max_length=2048,
        description="Absolute http(s) URL of the plexd binary; `{arch}` means amd64 or arm64.",
    )
    plexd_image: str | None = Field(
        default=None,
        max_length=512,
        description="Image of plexd with a tag or digest, never `:latest`.",
    )
