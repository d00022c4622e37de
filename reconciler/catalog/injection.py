"""The fields that each strategy writes, checked in a catalogue's schema.

The closed field map. The function's renderer writes these very paths; a test holds the two
together, since the reconciler imports no renderer. Source: seed 003, "The injected-XR field
map".
"""

from __future__ import annotations

from typing import Final

from function.contract.strategy import InjectionStrategy
from reconciler.catalog.schema_path import Path

SITES: Final[dict[InjectionStrategy, tuple[Path, ...]]] = {
    InjectionStrategy.CLOUD_INIT_USER_DATA: (("spec", "userData"),),
    InjectionStrategy.HELM_VALUES: (
        ("spec", "parameters", "helmValues", "bootstrapToken"),
        ("spec", "parameters", "helmValues", "apiUrl"),
        ("spec", "parameters", "helmValues", "plexdImage"),
    ),
    InjectionStrategy.PROVIDER_SECRET: (
        ("spec", "parameters", "providerSecret", "bootstrapToken"),
    ),
}
"""Every path that a strategy writes; a blueprint of it must read each."""
