"""`broker why`: one screen on why a declared resource is not Ready.

Flags, and what is printed; with the caller's own kubeconfig and rights. Only `reconciler.main`
imports it. Source: docs/why.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final, NoReturn

import click

from function.contract import names
from reconciler.adapters.kubernetes.cluster import open_client
from reconciler.adapters.kubernetes.diagnosis import resource_types
from reconciler.adapters.kubernetes.diagnosis.reader import DiagnosisReader
from reconciler.adapters.kubernetes.diagnosis.resource_types import UnknownTypeError
from reconciler.adapters.kubernetes.transport import kubeconfig as kubeconfigs
from reconciler.adapters.kubernetes.transport.client import KubernetesError, UnreachableError
from reconciler.app.queue.work_queue import describe
from reconciler.commands.store import EXIT_FAILED
from reconciler.domain.diagnosis.diagnose import Diagnosis, diagnose
from reconciler.domain.diagnosis.facts import DiagnosisFacts

DEFAULT_TYPE: Final = f"provisionedresources.{names.GROUP}"
TIMEOUT_S: Final = 60.0
"""All reads together: sixty-odd GETs take a second, and a person waits."""

_WIDTH: Final = 12


@click.command()
@click.argument("name")
@click.option("-n", "--namespace", help="Namespace; the context's without it.")
@click.option(
    "--kubeconfig", "path", envvar="KUBECONFIG", type=click.Path(path_type=Path),
    default=Path("~/.kube/config"), help="Kubeconfig file, as kubectl's flag.",
)  # fmt: skip
@click.option("--context", help="Context of the kubeconfig; its current one without it.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def why(name: str, *, namespace: str | None, path: Path, context: str | None, output: str) -> None:
    """Say what NAME waits for, who has to act, since when, and the next command.

    NAME is a ProvisionedResource, or TYPE/NAME of another composite resource. Only what you may
    read is read; what you may not is listed. Exit status 0 with an answer, 1 when there is no
    such resource or the cluster does not answer.
    """
    facts = _facts(name, namespace=namespace, path=path.expanduser(), context=context)
    found = diagnose(facts)
    if output == "json":
        click.echo(json.dumps(_document(facts, found), indent=2))
    else:
        click.echo("\n".join(_screen(facts, found)))
    sys.exit(0 if found.found else EXIT_FAILED)


def _facts(name: str, *, namespace: str | None, path: Path, context: str | None) -> DiagnosisFacts:
    if os.pathsep in str(path):
        _fail("KUBECONFIG: must name one file here; name one with --kubeconfig")
    try:
        own = kubeconfigs.check(path, context)
        return asyncio.run(_read(name, namespace or own, path, context))
    except kubeconfigs.KubeconfigError as error:
        _fail(f"--kubeconfig {path}: {error}")
    except UnknownTypeError as error:
        _fail(str(error))
    except (KubernetesError, UnreachableError, OSError, TimeoutError, ValueError) as error:
        _fail(f"cannot read {name!r}: {describe(error)}")


async def _read(name: str, namespace: str, path: Path, context: str | None) -> DiagnosisFacts:
    resource_type, slash, rest = name.partition("/")
    if "/" in rest or "/" in namespace:
        message = "NAME is NAME or TYPE/NAME, and --namespace one name"
        raise UnknownTypeError(message)
    client = await open_client(path, context=context)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            word = resource_type if slash else DEFAULT_TYPE
            wanted = await resource_types.find(client, word)
            return await DiagnosisReader(client).read(wanted, namespace, rest if slash else name)
    finally:
        await client.close()


def _fail(message: str) -> NoReturn:
    click.echo(f"broker: {message}", err=True)
    sys.exit(EXIT_FAILED)


def _screen(facts: DiagnosisFacts, found: Diagnosis) -> Iterator[str]:
    state = "Ready" if found.ready else "not Ready" if found.found else "not found"
    phases = sorted({node.phase for node in facts.nodes if node.phase})
    shown = f" ({', '.join(phases)})" if phases else ""
    yield f"{facts.xr.kind} {facts.namespace}/{facts.xr.name}: {state}{shown}"
    yield ""
    told = found.explanation
    explained = told if told == found.reason else f"{found.reason}: {told}"
    lines = (
        ("Why", explained),
        ("Says", found.culprit),
        ("Since", found.since),
        ("Acts", "" if found.ready else found.actor.value),
        ("Next", found.command),
        ("Runbook", f"docs/runbooks/{found.runbook}" if found.runbook else ""),
        ("Nodes", _nodes(facts)),
        ("Not read", ", ".join(found.unreadable)),
    )
    for label, text in lines:
        if text:
            yield f"{label:<{_WIDTH}}{text}"


def _nodes(facts: DiagnosisFacts) -> str:
    """Count the nodes of an XR that has several, by phase."""
    if len(facts.nodes) < 2:
        return ""
    phases = [node.phase or "no status" for node in facts.nodes]
    return ", ".join(f"{phases.count(each)} {each}" for each in sorted(set(phases)))


def _document(facts: DiagnosisFacts, found: Diagnosis) -> dict[str, object]:
    resource = {"kind": facts.xr.kind, "namespace": facts.namespace, "name": facts.xr.name}
    phases = {node.record.name: node.phase for node in facts.nodes}
    return {"resource": resource, "phases": phases, **asdict(found), "actor": found.actor.name}
