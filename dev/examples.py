"""Which composites `example/` holds, and what each is rendered with.

The table that `make render` goes through. `dev.render` and the tests use it; a test fails
when a composite in `example/` is not in the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "example"
COMPOSITION = ROOT / "compositions" / "provisionedresource.yaml"
XRD = ROOT / "xrds" / "provisionedresource.yaml"
KINDS = ROOT / "deploy" / "crds"
MACHINES = ROOT / "dev" / "cloud" / "crd.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One composite in Git, and what it is rendered with.

    Args:
        xr: its file.
        compositions: files of the Compositions that it and what it composes may need.
        schemas: files and folders of definitions, beside the providers'.
        required: files and folders with what functions may ask for.
    """

    xr: Path
    compositions: Sequence[Path]
    schemas: Sequence[Path]
    required: Sequence[Path] = ()

    def functions(self) -> set[str]:
        """Name the functions of its pipelines."""
        return {
            step["functionRef"]["name"]
            for path in self.compositions
            for step in yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]["pipeline"]
        }


def examples() -> list[Example]:
    """Answer every example, by path."""
    ours = (XRD, KINDS)
    blueprints = sorted((EXAMPLE / "blueprints").iterdir())
    found = [
        Example(
            xr=path,
            compositions=[COMPOSITION, *(each / "composition.yaml" for each in blueprints)],
            schemas=[*ours, *(each / "xrd.yaml" for each in blueprints), MACHINES],
            required=[EXAMPLE / "platform"],
        )
        for path in (EXAMPLE / "shop").glob("*.yaml")
    ]
    published = EXAMPLE / "published"
    for path in published.glob("*/resource.yaml"):
        file = f"{path.parent.name}.yaml"
        found.append(
            Example(
                xr=path,
                compositions=[COMPOSITION, COMPOSITION.parent / "blueprints" / file],
                schemas=[*ours, XRD.parent / "blueprints" / file],
                required=[path.with_name("blueprint.yaml"), published / "clouds.yaml"],
            )
        )
    enrol = EXAMPLE / "enrol"
    found.append(
        Example(
            xr=enrol / "orders.yaml",
            compositions=[enrol / "composition.yaml"],
            schemas=[enrol / "xrd.yaml", KINDS],
        )
    )
    return sorted(found, key=lambda example: example.xr)
