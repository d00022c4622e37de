"""`broker catalog import`: a folder of blueprints in, BlueprintVersion manifests out.

Reading and writing files, the lines on stderr, the exit status. Only `reconciler.main`
imports it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from function.render.documents import yaml
from reconciler.catalog import decoding
from reconciler.catalog.blueprint import FILES, Source, judge
from reconciler.catalog.findings import Finding

EXIT_WRONG: Final = 1
EXIT_INPUT: Final = 2

BLUEPRINTS_MAX: Final = 256
"""Most blueprints of one catalogue, as the platform's own import takes slugs."""

LAYOUT: Final = "catalog"


class CatalogError(Exception):
    """A folder is no catalogue at all; the message is one line."""


@click.group()
def catalog() -> None:
    """Blueprint catalogues."""


@catalog.command("import")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write one file per blueprint to this folder; default: stdout.",
)
def import_catalog(folder: Path, out: Path | None) -> None:
    """Check FOLDER/catalog/<slug>/{metadata.json,xrd.yaml,composition.yaml}.

    Writes one BlueprintVersion per blueprint. If anything is wrong, prints every finding with
    file and field, writes nothing and exits with status 1. XRDs and Compositions need no change;
    apply them as they are.

    Idempotency: equal input writes equal bytes.
    """
    try:
        sources = _sources(folder)
        judgements = [judge(source) for source in sources]
        findings = [each for judgement in judgements for each in judgement.findings]
        _tell(findings)
        manifests = [each.manifest for each in judgements if each.manifest is not None]
        if len(manifests) != len(judgements):
            wrong = sum(not each.advisory for each in findings)
            click.echo(f"broker: cannot import {folder}: {wrong} findings", err=True)
            sys.exit(EXIT_WRONG)
        _write(manifests, out)
    except (CatalogError, OSError) as error:
        click.echo(f"broker: cannot import {folder}: {_cause(error)}", err=True)
        sys.exit(EXIT_INPUT)


def _sources(folder: Path) -> list[Source]:
    root = folder / LAYOUT
    if not root.is_dir():
        message = f"it has no folder {LAYOUT}"
        raise CatalogError(message)
    slugs = sorted(path for path in root.iterdir() if path.is_dir())
    if not 0 < len(slugs) <= BLUEPRINTS_MAX:
        message = f"{LAYOUT} must hold 1 to {BLUEPRINTS_MAX} blueprints"
        raise CatalogError(message)
    return [_source(path) for path in slugs]


def _source(path: Path) -> Source:
    files = {name: _read(path / name) for name in FILES if (path / name).is_file()}
    return Source(slug=path.name, folder=f"{LAYOUT}/{path.name}", files=files)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        # One byte more than may be, so that the decoder sees that it is too much.
        return file.read(decoding.FILE_MAX_BYTES + 1)


def _tell(findings: Iterable[Finding]) -> None:
    for finding in findings:
        prefix = "note: " if finding.advisory else ""
        click.echo(f"{prefix}{finding}", err=True)


def _write(manifests: list[dict[str, Any]], out: Path | None) -> None:
    if out is None:
        click.echo("---\n".join(yaml.dump(each) for each in manifests), nl=False)
        return
    out.mkdir(parents=True, exist_ok=True)
    for manifest in manifests:
        target = out / f"{manifest['metadata']['name']}.yaml"
        staged = target.with_name(f".{target.name}.partial")
        staged.write_text(yaml.dump(manifest), encoding="utf-8")
        staged.replace(target)
        click.echo(os.fspath(target))


def _cause(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or 'a file cannot be read or written'}: {error.filename}"
    return str(error)
