"""`broker render`: prints what a cluster applies.

Flags, reading the token, the exit status. Only `reconciler.main` imports it. A token is
read from a file or from stdin, never from an argument or the environment, which other users
of a machine can see.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import IO, Final, NoReturn, TypedDict, Unpack

import click

from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from function.render.documents import daemonset as bundles

EXIT_INPUT: Final = 2

TOKEN_FILE_MAX_BYTES: Final = 4096
"""The longest token plexd takes is 512 bytes; the rest is room for blanks around it."""

CA_FILE_MAX_BYTES: Final = 65536
"""As the record's `caBundle`."""

Command = Callable[..., None]


class _Given(TypedDict):
    profile: str
    token_delivery: str
    api_url: str
    plexd_image: str
    token_file: IO[bytes] | None
    secret_store: str | None
    remote_key: str | None
    remote_property: str | None
    project_id: str | None
    resource_handle: str | None
    ca_file: IO[bytes] | None
    node: str | None


@click.group()
def render() -> None:
    """Print manifests; nothing is applied anywhere."""


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_PROFILE: Final = click.option(
    "--profile",
    type=click.Choice([profile.value for profile in bundles.Profile]),
    default=bundles.Profile.SEED.value,
    show_default=True,
    help="Profile of the pod, see above.",
)
_DELIVERY: Final = click.option(
    "--token-delivery",
    type=click.Choice([mode.value for mode in bundles.TokenDelivery if mode]),
    required=True,
    help="secret: the bundle holds the token. eso: an ExternalSecret fetches it.",
)
_AGENT: Final = _options(
    click.option("--api-url", required=True, help="Absolute URL that the agent registers at."),
    click.option(
        "--plexd-image", required=True, help="Image of the agent, by tag or digest, never :latest."
    ),
    click.option("--node", help="Host name of the one node to run on; default: every node."),
)
_SECRET: Final = click.option(
    "--token-file",
    type=click.File("rb"),
    help="secret mode: file that holds the token; - reads stdin.",
)
_ESO: Final = _options(
    click.option("--secret-store", help="eso mode: name of a ClusterSecretStore."),
    click.option("--remote-key", help="eso mode: key of the token in the store."),
    click.option("--remote-property", help="eso mode: property of that key, if any."),
)
_PLEXD: Final = _options(
    click.option("--project-id", help="plexd profile: the Project's UUID."),
    click.option("--resource-handle", help="plexd profile: the handle to register as."),
    click.option(
        "--ca-file", type=click.File("rb"), help="plexd profile: PEM certificates to trust."
    ),
)


@render.command()
@_options(_PROFILE, _DELIVERY, _AGENT, _SECRET, _ESO, _PLEXD)
def daemonset(**given: Unpack[_Given]) -> None:
    """Print the bundle that runs plexd as a DaemonSet on a Kubernetes cluster.

    It holds the namespace plexsphere-system, a Secret or an ExternalSecret named
    plexd-bootstrap-token, and the DaemonSet. A token is single-use: it enrols one node, so
    name that node on a cluster of several.

    \b
    Profiles:
      seed   the reference document's pod: non-root, no capability, nothing writable.
             It fits Pod Security "restricted", but no published plexd runs in it.
      plexd  what published plexd needs: root with NET_ADMIN and NET_RAW alone, the
             host's network, /var/lib/plexd of the host, a config.yaml beside the token.

    In secret mode what is printed holds the token: pipe it, do not keep it.
    """  # noqa: D301 - click's mark for lines it must not wrap
    try:
        text = bundles.document(_bundle(given))
    except ContractError as error:
        _fail(str(error))
    click.echo(text, nl=False)


def _bundle(given: _Given) -> bundles.DaemonSetBundle:
    token = _text(given["token_file"], "--token-file", TOKEN_FILE_MAX_BYTES)
    return bundles.DaemonSetBundle(
        api_url=given["api_url"],
        plexd_image=given["plexd_image"],
        token_delivery=bundles.TokenDelivery(given["token_delivery"]),
        profile=bundles.Profile(given["profile"]),
        token=None if token is None else TokenPlaintext(token.strip()),
        secret_store=given["secret_store"],
        remote_key=given["remote_key"],
        remote_property=given["remote_property"],
        project_id=given["project_id"],
        resource_handle=given["resource_handle"],
        ca_bundle=_text(given["ca_file"], "--ca-file", CA_FILE_MAX_BYTES),
        node=given["node"],
    )


def _text(file: IO[bytes] | None, option: str, largest: int) -> str | None:
    if file is None:
        return None
    try:
        content = file.read(largest + 1)
    except OSError as error:
        _fail(f"{option}: {error.strerror}")
    if len(content) > largest:
        _fail(f"{option}: must hold at most {largest} bytes")
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        _fail(f"{option}: must hold ASCII text")


def _fail(detail: str) -> NoReturn:
    click.echo(f"broker: cannot render daemonset: {detail}", err=True)
    sys.exit(EXIT_INPUT)
