"""Reading a model of settings from the environment.

What every such model has in common, and how its faults are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class SettingsError(Exception):
    """The environment does not make settings.

    Attributes:
        faults: One line per fault: the variable and the rule it breaks.
    """

    def __init__(self, faults: tuple[str, ...]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


class Environment(BaseModel):
    """Checked settings; each field's alias is its variable."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, arbitrary_types_allowed=True
    )
    rules: ClassVar[Mapping[str, str]] = {}
    """What a variable must be, where its parser does not say it."""

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from an environment; a blank variable counts as absent.

        Raises:
            SettingsError: At least one variable is missing or breaks its rule.
        """
        present = {name: value.strip() for name, value in environ.items() if value.strip()}
        try:
            settings = cls.model_validate(present)
        except ValidationError as error:
            raise SettingsError(cls._faults(error)) from None
        faults = tuple(settings._combined_faults())
        if faults:
            raise SettingsError(faults)
        return settings

    def _combined_faults(self) -> list[str]:
        """Return the faults of variables that do not go together."""
        return []

    @classmethod
    def _faults(cls, error: ValidationError) -> tuple[str, ...]:
        lines: list[str] = []
        for fault in error.errors(include_url=False, include_input=False):
            name = str(fault["loc"][0])
            cause = fault.get("ctx", {}).get("error")
            rule = "must be set" if fault["type"] == "missing" else cls.rules.get(name)
            lines.append(f"{name}: {rule or cause or 'has no legal value'}")
        return tuple(sorted(set(lines)))
