"""`broker openapi`: the OpenAPI document of the node listener, as JSON.

Writing it to stdout or a file. Only `reconciler.main` imports it.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from reconciler.adapters.http.node.openapi import document


def text() -> str:
    """Return the document as it is kept in `docs/openapi.json`, with a final newline."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file; default: stdout.",
)
def openapi(out: Path | None) -> None:
    """Write the OpenAPI 3.1 document of the node listener.

    Idempotency: equal programs write equal bytes.
    """
    if out is None:
        click.echo(text(), nl=False)
        return
    staged = out.with_name(f".{out.name}.partial")
    staged.write_text(text(), encoding="utf-8")
    staged.replace(out)
    click.echo(out)
