"""A small stand-in of the API that a booted node calls, over HTTP or TLS."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import ipaddress
import ssl
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# A boot takes about one second alone and several beside a build.
DEADLINE_S = 45.0


async def until(fact: Callable[[], bool]) -> None:
    """Waits for a fact that processes bring about."""
    async with asyncio.timeout(DEADLINE_S):
        while not fact():  # noqa: ASYNC110 - processes signal nothing to this loop
            await asyncio.sleep(0.05)


@dataclass
class Platform:
    """What nodes asked, and how they are answered."""

    url: str = ""
    registrations: list[dict[str, Any]] = field(default_factory=list)
    heartbeats: list[tuple[str, Mapping[str, str], dict[str, Any]]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    states: list[Mapping[str, str]] = field(default_factory=list)
    heartbeat_status: int = 200
    node_id: str = str(uuid.UUID(int=7))

    async def register(self, request: web.Request) -> web.Response:
        self.registrations.append(await request.json())
        status = self.answers.pop(0) if self.answers else 201
        if status != 201:
            problem = {"code": "token_consumed", "status": status}
            return web.json_response(problem, status=status, headers={"Retry-After": "0"})
        body = {
            "node_id": self.node_id,
            "mesh_ip": "100.64.0.7",
            "signing_public_key": base64.b64encode(b"s" * 32).decode(),
            "signing_key_id": "did:example#1",
            "nsk": base64.b64encode(b"n" * 32).decode(),
            "peer_snapshot": [],
            "domain_mesh_cidr": "100.64.0.0/10",
        }
        return web.json_response(body, status=201)

    async def heartbeat(self, request: web.Request) -> web.Response:
        node = request.match_info["node"]
        self.heartbeats.append((node, dict(request.headers), await request.json()))
        answer = {"accepted_at": "", "reconcile": False, "rotate_keys": False}
        return web.json_response(answer, status=self.heartbeat_status)

    async def state(self, request: web.Request) -> web.Response:
        self.states.append(dict(request.headers))
        peer = {
            "node_id": str(uuid.UUID(int=8)),
            "mesh_ip": "100.64.0.8",
            "public_key": base64.b64encode(b"p" * 32).decode(),
        }
        entries: dict[str, list[str]] = {"metadata": [], "data": [], "reports": []}
        body = {
            "peers": [peer],
            "reachability": {"state": "healthy", "changed_at": "2026-01-01T00:00:00Z"},
            "policy": None,
            "bridge": None,
            "state": entries,
            "reports": entries,
            "executions": [],
            "sessions": [],
        }
        return web.json_response(body)


@asynccontextmanager
async def platform(tls: ssl.SSLContext | None = None) -> AsyncIterator[Platform]:
    """Serves on a free loopback port while the block runs."""
    served = Platform()
    app = web.Application()
    app.router.add_post("/v1/register", served.register)
    app.router.add_post("/v1/nodes/{node}/heartbeat", served.heartbeat)
    app.router.add_get("/v1/nodes/{node}/state", served.state)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        scheme = "https" if tls else "http"
        served.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
        yield served
    finally:
        await runner.cleanup()


def self_signed(folder: Path) -> tuple[ssl.SSLContext, str]:
    """Makes a certificate for 127.0.0.1 and answers a server's context and its PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "demo platform")])
    now = dt.datetime.now(dt.UTC)
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "tls.crt").write_bytes(pem)
    (folder / "tls.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context, pem.decode()
