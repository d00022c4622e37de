"""What the inputs of both kinds share.

Belongs here: the strict base of an input's model and the knobs that every input takes. Not
here: what one input alone reads.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Strict(BaseModel):
    """A frozen piece of an input; a field that it does not know is an error.

    A misspelt field that is ignored would leave a node without what its author meant.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class InputEnrolment(Strict):
    """Knobs a Composition may give; the reconciler's own, in the record's status, win."""

    base_url: str | None = Field(default=None, alias="baseURL", max_length=2048)
    plexd_download_url: str | None = Field(default=None, alias="plexdDownloadURL", max_length=2048)
    plexd_image: str | None = Field(default=None, max_length=512)
