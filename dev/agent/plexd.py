#!/usr/bin/env python3
"""Stand-in for plexd: registers a node with a bootstrap token, then heartbeats and pulls state.

Self-contained and standard library only, because a machine downloads this one file. It knows
nothing but its files, its environment and HTTP, and prints neither the token nor the node's key.

Source: contracts, sections 1.2 (configuration), 1.3 (registration G2), 1.5 and 1.6 (heartbeat,
state).
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import http.client
import ipaddress
import json
import os
import random
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

VERSION = "0.8.0-standin"
_PRIME = 2**255 - 19
_TOKEN_BYTES_MAX = 512
_REPLY_BYTES_MAX = 1024 * 1024
_REQUEST_TIMEOUT_S = 30.0
_RETRY_FIRST_S, _RETRY_MAX_S, _RETRY_JITTER = 1.0, 60.0, 0.25
_STATE_INTERVAL_S = 60.0
_STATE_OBJECTS = ("policy", "bridge", "state", "reports", "reachability")
_STATE_ARRAYS = ("peers", "executions", "sessions")
_STOP_STATUSES = frozenset({400, 401, 403, 404, 409, 422})
_ETC, _DATA = Path("/etc/plexd"), Path("/var/lib/plexd")


class AgentError(Exception):
    """The command ends; ``code`` is its exit status, the text quotes no secret."""

    def __init__(self, text: str, *, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a registration needs; durations are seconds."""

    api: str
    project_id: str
    resource_handle: str
    token_file: Path
    budget_s: float
    heartbeat_s: float


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP answer; ``status`` 0 means that there was none."""

    status: int
    body: bytes = b""
    retry_after: str = ""


def x25519(scalar: bytes, point: bytes) -> bytes:
    """Multiplies ``point`` by ``scalar``, 32 bytes each; used only for throw-away demo keys.

    Source: RFC 7748, section 5.
    """
    k = (int.from_bytes(scalar, "little") & ~7 & ((1 << 255) - 1)) | (1 << 254)
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for position in reversed(range(255)):
        bit = (k >> position) & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % _PRIME, b * b % _PRIME, d * a % _PRIME, c * b % _PRIME
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % _PRIME, u * (da - cb) ** 2 % _PRIME
        x2, z2 = aa * bb % _PRIME, e * (aa + 121665 * e) % _PRIME
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, _PRIME - 2, _PRIME) % _PRIME).to_bytes(32, "little")


def public_key(private: bytes) -> bytes:
    """Answers the public half of a 32-byte private key."""
    return x25519(private, (9).to_bytes(32, "little"))


def retry_delays(budget_s: float, jitter: Callable[[], float] = random.random) -> Iterator[float]:
    """Yields pauses in seconds: 1, 2, 4 … 60, each ±25 %, together at most ``budget_s``.

    ``jitter`` answers numbers from 0 to 1.
    """
    pause, spent = _RETRY_FIRST_S, 0.0
    while True:
        delay = pause * (1 + _RETRY_JITTER * (2 * jitter() - 1))
        if spent + delay > budget_s:
            return
        spent += delay
        yield delay
        pause = min(pause * 2, _RETRY_MAX_S)


def trust() -> ssl.SSLContext:
    """The system's certificates, and the control plane's own when the document brought them."""
    context = ssl.create_default_context()
    bundle = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
    for path in (bundle, _ETC / "ca.crt"):
        if path.is_file() and path.stat().st_size:
            context.load_verify_locations(path)
    return context


def ask(url: str, body: Mapping[str, object] | None = None, bearer: str = "") -> Reply:
    """Posts one JSON body, or gets without one; answers status 0 when no answer came."""
    headers = {"User-Agent": f"plexd/{VERSION}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - checked
    context = trust() if url.startswith("https:") else None
    try:
        with urllib.request.urlopen(request, timeout=_REQUEST_TIMEOUT_S, context=context) as reply:  # noqa: S310
            return Reply(status=reply.status, body=reply.read(_REPLY_BYTES_MAX))
    except urllib.error.HTTPError as error:
        after = error.headers.get("Retry-After") or ""
        return Reply(status=error.code, body=error.read(_REPLY_BYTES_MAX), retry_after=after)
    except (OSError, http.client.HTTPException) as error:
        log(f"no answer from the API: {type(error).__name__}")
        return Reply(status=0)


def log(text: str) -> None:
    """Prints one line for the journal."""
    print(f"plexd: {text}", file=sys.stderr, flush=True)


def read_token(path: Path) -> str:
    """Reads the bootstrap token.

    Raises:
        AgentError: no file, or a token that is empty, too long or not printable ASCII.
    """
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        message = f"cannot read token file {path}"
        raise AgentError(message) from None
    printable = all(" " <= character <= "~" for character in token)
    if not token or len(token) > _TOKEN_BYTES_MAX or not printable:
        message = f"cannot use token file {path}: 1 to {_TOKEN_BYTES_MAX} printable bytes expected"
        raise AgentError(message)
    return token


def _exactly_32(answer: Mapping[str, Any], field: str) -> bytes:
    try:
        raw = base64.b64decode(answer[field], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raw = b""
    if len(raw) != 32:
        message = f"cannot accept registration: {field} must be base64 of 32 bytes"
        raise AgentError(message)
    return raw


def accept(body: bytes) -> dict[str, Any]:
    """Validates a registration's answer as plexd does and answers it.

    Raises:
        AgentError: naming the field that is missing or wrong.
    """
    field = "the body"
    try:
        answer = json.loads(body)
        field = "node_id"
        uuid.UUID(answer["node_id"])
        field = "mesh_ip"
        ipaddress.ip_address(answer["mesh_ip"])
        field = "peer_snapshot"
        list(answer["peer_snapshot"])
    except (KeyError, TypeError, ValueError, AttributeError):
        message = f"cannot accept registration: {field} is missing or wrong"
        raise AgentError(message) from None
    _exactly_32(answer, "nsk")
    _exactly_32(answer, "signing_public_key")
    return dict(answer)


def accept_state(body: bytes) -> int:
    """Validates a state as plexd's decoder does and answers the number of peers.

    Every block must be there: arrays, and objects or null.

    Raises:
        AgentError: naming the block that is missing or wrong.
    """
    block = "the body"
    try:
        state = json.loads(body)
        for block in (*_STATE_OBJECTS, *_STATE_ARRAYS):
            kind = list if block in _STATE_ARRAYS else dict | None
            if not isinstance(state[block], kind):
                break
        else:
            block = "peers"
            for peer in state[block]:
                uuid.UUID(peer["node_id"])
                ipaddress.ip_address(peer["mesh_ip"])
                _exactly_32(peer, "public_key")
            block = "reachability"
            datetime.fromisoformat(state[block]["changed_at"])
            return len(state["peers"])
    except (KeyError, TypeError, ValueError, AttributeError, AgentError):
        pass
    message = f"cannot accept state: {block} is missing or wrong"
    raise AgentError(message)


def pull(reply: Reply) -> str:
    """Answers the journal's line of a pulled state."""
    if reply.status != 200:
        return f"state not pulled ({_problem(reply)})"
    try:
        return f"state pulled, {accept_state(reply.body)} peers"
    except AgentError as error:
        return str(error)


def _problem(reply: Reply) -> str:
    try:
        code = json.loads(reply.body)["code"]
    except (ValueError, KeyError, TypeError):
        return str(reply.status)
    return f"{reply.status} {code}"


def request_registration(settings: Settings, private: bytes) -> dict[str, Any]:
    """Registers, trying again while that may help, and answers the validated reply.

    The nonce is one for all tries: the server may have accepted one whose answer was lost.

    Raises:
        AgentError: refused for good, the budget is used up, or an answer that cannot be used.
    """
    body = {
        "project_id": settings.project_id,
        "resource_handle": settings.resource_handle,
        "bootstrap_token": read_token(settings.token_file),
        "nonce": str(uuid.uuid4()),
        "public_key": base64.b64encode(public_key(private)).decode(),
    }
    deadline = time.monotonic() + settings.budget_s
    delays = retry_delays(settings.budget_s)
    while True:
        reply = ask(f"{settings.api}/v1/register", body)
        if reply.status in (200, 201):
            return accept(reply.body)
        if reply.status in _STOP_STATUSES:
            message = f"registration refused: {_problem(reply)}"
            raise AgentError(message)
        delay = next(delays, None)
        if delay is None or time.monotonic() + delay > deadline:
            message = f"cannot register within {settings.budget_s:g} s: {_problem(reply)}"
            raise AgentError(message)
        if reply.status == 429 and reply.retry_after.isdigit():
            delay = min(float(reply.retry_after), max(0.0, deadline - time.monotonic()))
        log(f"registration not possible yet ({_problem(reply)}), next try in {delay:.1f} s")
        time.sleep(delay)


def load_identity() -> dict[str, str] | None:
    """Answers the stored identity; ``None`` when there is none that is whole."""
    try:
        identity = json.loads((_DATA / "identity.json").read_text())
        uuid.UUID(identity["node_id"])
        whole = len(base64.b64decode((_DATA / "node_secret_key").read_text())) == 32
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(identity) if whole else None


def _store(name: str, text: str) -> None:
    # Renamed into place: a crash must not leave half an identity.
    temporary = _DATA / f".{name}.{secrets.token_hex(4)}"
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    temporary.replace(_DATA / name)


def join(settings: Settings) -> dict[str, str]:
    """Makes sure that this node is registered and answers its identity.

    Idempotency: with a valid identity on disk nothing is sent and nothing is changed.
    """
    identity = load_identity()
    if identity is None:
        private = secrets.token_bytes(32)
        answer = request_registration(settings, private)
        _DATA.mkdir(parents=True, exist_ok=True)
        _DATA.chmod(0o700)
        _store("private_key", base64.b64encode(private).decode())
        _store("node_secret_key", answer["nsk"])
        _store("signing_public_key", answer["signing_public_key"])
        names = ("node_id", "mesh_ip", "signing_key_id", "domain_mesh_cidr")
        identity = {name: str(answer.get(name, "")) for name in names}
        _store("identity.json", json.dumps(identity))
        try:
            settings.token_file.unlink(missing_ok=True)
        except OSError as error:
            log(f"cannot delete the token file: {error.strerror}")
    print(f"node_id: {identity['node_id']}\nmesh_ip: {identity['mesh_ip']}", flush=True)
    return identity


def bearer(node_id: str) -> str:
    """The credential of a registered node."""
    nsk = base64.b64decode((_DATA / "node_secret_key").read_text())
    payload = base64.urlsafe_b64encode(uuid.UUID(node_id).bytes + nsk).decode().rstrip("=")
    return f"nsk_plexd_{payload}"


def up(settings: Settings) -> None:
    """Registers when needed, then heartbeats until it is refused, and pulls state at times.

    Raises:
        AgentError: the registration failed, or the API does not know this node any more.
    """
    node_id = join(settings)["node_id"]
    checksum = base64.b64encode(hashlib.sha256(Path(__file__).read_bytes()).digest()).decode()
    credential = bearer(node_id)
    pull_at = time.monotonic()
    while True:
        body = {
            "client_now": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "binary_checksum": checksum,
            "binary_version": VERSION,
            "nat_summary": {},
        }
        reply = ask(f"{settings.api}/v1/nodes/{node_id}/heartbeat", body, credential)
        if reply.status in (401, 403):
            message = f"heartbeat refused: {_problem(reply)}; this node is not known any more"
            raise AgentError(message)
        if not 200 <= reply.status < 300:
            log(f"heartbeat failed ({_problem(reply)})")
        elif time.monotonic() >= pull_at:
            pull_at = time.monotonic() + _STATE_INTERVAL_S
            log(pull(ask(f"{settings.api}/v1/nodes/{node_id}/state", bearer=credential)))
        time.sleep(settings.heartbeat_s)


def _seconds(name: str, default: float) -> float:
    text = os.environ.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        message = f"{name} must be a number of seconds above 0"
        raise AgentError(message, code=2)
    return value


def settings(flags: Mapping[str, str]) -> Settings:
    """Puts flags and environment together; a flag wins.

    Raises:
        AgentError: with status 2, naming every setting that is absent or wrong.
    """
    env = os.environ
    api = (flags.get("api") or env.get("PLEXD_API") or "").rstrip("/")
    project = flags.get("project_id") or env.get("PLEXD_PROJECT_ID") or ""
    handle = flags.get("resource_handle") or env.get("PLEXD_RESOURCE_HANDLE") or ""
    token_file = flags.get("token_file") or env.get("PLEXD_BOOTSTRAP_TOKEN_FILE")
    http_url = api.startswith(("http://", "https://"))
    faults = [] if http_url else ["--api or PLEXD_API (http or https)"]
    faults += [] if project else ["--project-id or PLEXD_PROJECT_ID"]
    faults += [] if handle else ["--resource-handle or PLEXD_RESOURCE_HANDLE"]
    if faults:
        message = f"cannot register: {', '.join(faults)} must be given"
        raise AgentError(message, code=2)
    return Settings(
        api=api,
        project_id=project,
        resource_handle=handle,
        token_file=Path(token_file or _ETC / "bootstrap-token"),
        budget_s=_seconds("PLEXD_MAX_RETRY_DURATION", 300.0),
        heartbeat_s=_seconds("PLEXD_HEARTBEAT_INTERVAL", 30.0),
    )


def parser() -> argparse.ArgumentParser:
    """The command line of plexd, and the seeds' ``register``; flags stand on either side of it."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--api", "--api-url", dest="api")
    common.add_argument("--project-id")
    common.add_argument("--resource-handle")
    common.add_argument("--token-file", "--bootstrap-token-file", dest="token_file")
    common.add_argument("--config", help="accepted as plexd does; this stand-in needs none")
    top = argparse.ArgumentParser(prog="plexd", parents=[common])
    top.add_argument("--version", action="version", version=f"plexd {VERSION}")
    commands = top.add_subparsers(dest="command", required=True)
    for name in ("join", "register", "up"):
        commands.add_parser(name, parents=[common])
    return top


def main(argv: Sequence[str]) -> int:
    """Runs one command and answers its exit status."""
    flags = vars(parser().parse_args(argv))
    try:
        given = settings(flags)
        up(given) if flags["command"] == "up" else join(given)
    except AgentError as error:
        log(str(error))
        return error.code
    except OSError as error:
        log(f"cannot keep the identity in {_DATA}: {error.strerror}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
