"""The enrolment document a booting VM executes.

Both forms of the `#cloud-config` document. Fails closed, naming the field and never a
value. Source: contracts §2.2 (the form published plexd needs); seed 003, "The user-data
document contract" (the literal three-step form).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from function.contract.strategy import DocumentForm
from function.render.documents import install, options, yaml

HEADER: Final = "#cloud-config\n"
"""cloud-init wants this first line literally, so it is no part of what is dumped."""

TOKEN_PATH: Final = "/etc/plexd/bootstrap-token"  # noqa: S105 - a path
TOKEN_MAX_BYTES: Final = 512
"""Longest token plexd accepts (contracts §1.2)."""

_INSTALL: Final = "/etc/plexd/install-plexd.sh"
_SEED_ENVIRONMENT: Final = "/etc/plexd/plexd.env"
_CA: Final = "/etc/plexd/ca.crt"
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_HANDLE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFields:
    """The unchecked values that a document is rendered from.

    Attributes:
        base_url: Where the node registers.
        plexd_download_url: Where it fetches plexd; may hold `{arch}`.
        plexd_sha256: Checksum by architecture; empty: the download is not checked.
        ca_bundle: PEM certificates the node must trust, or None.
        project_id: The Project's UUID.
        handle: The resource handle, `pr-<uuid>`.
        token: The bootstrap token.
        form: Which document.
    """

    base_url: str | None
    plexd_download_url: str | None
    plexd_sha256: Mapping[str, str] = field(default_factory=dict)
    ca_bundle: str | None = None
    project_id: str
    handle: str
    token: TokenPlaintext
    form: DocumentForm = DocumentForm.PLEXD


def user_data(enrolment: DocumentFields) -> str:
    """Return the document, deterministic for equal input and of any size.

    Raises:
        ContractError: A value is missing or breaks its rule.
    """
    return document(body(enrolment))


def body(enrolment: DocumentFields) -> dict[str, Any]:
    """Return what the document holds below its header.

    Raises:
        ContractError: A value is missing or breaks its rule.
    """
    match enrolment.form:
        case DocumentForm.PLEXD:
            return _plexd(enrolment)
        case DocumentForm.SEED:
            return _seed(enrolment)
        case _:
            assert_never(enrolment.form)


def document(body: Mapping[str, Any]) -> str:
    """Return a body as the text that cloud-init reads."""
    return HEADER + yaml.dump(dict(body))


def plaintext(token: TokenPlaintext) -> str:
    """Return a token's plaintext if it is one plexd would accept.

    Raises:
        ContractError: It is empty, too long, or holds a blank or unprintable character.
    """
    value = token.reveal()
    if not _TOKEN.fullmatch(value) or len(value) > TOKEN_MAX_BYTES:
        rule = f"must hold 1 to {TOKEN_MAX_BYTES} printable characters without blanks"
        raise ContractError(field="bootstrap.token", rule=rule)
    return value


def _plexd(enrolment: DocumentFields) -> dict[str, Any]:
    base_url = options.http_url("enrolment.baseURL", enrolment.base_url)
    urls = options.download_url("enrolment.plexdDownloadURL", enrolment.plexd_download_url)
    sums = options.sha256("enrolment.plexdSHA256", dict(enrolment.plexd_sha256))
    if not sums and any(url.startswith("http:") for url in urls.values()):
        rule = "is required where the download URL is plain http"
        raise ContractError(field="enrolment.plexdSHA256", rule=rule)
    project = _handle("project id", enrolment.project_id)
    handle = _handle("resource handle", enrolment.handle)
    environment = {
        "PLEXD_API": base_url,
        "PLEXD_PROJECT_ID": project,
        "PLEXD_RESOURCE_HANDLE": handle,
        "PLEXD_BOOTSTRAP_TOKEN_FILE": TOKEN_PATH,
    }
    config = {
        "api": {"base_url": base_url},
        "registration": {
            "project_id": project,
            "resource_handle": handle,
            "token_file": TOKEN_PATH,
        },
    }
    files = [
        _file(TOKEN_PATH, "0600", plaintext(enrolment.token)),
        _file(install.ENVIRONMENT, "0600", install.environment(environment)),
        _file(install.CONFIG, "0600", yaml.dump(config)),
        _file(_INSTALL, "0755", install.installer(urls, sums)),
        _file("/etc/systemd/system/plexd.service", "0644", install.UNIT),
    ]
    body: dict[str, Any] = {"write_files": files}
    if enrolment.ca_bundle is not None:
        certificates = options.ca_bundle("enrolment.caBundle", enrolment.ca_bundle)
        files.append(_file(_CA, "0644", "".join(f"{pem}\n" for pem in certificates)))
        body["ca_certs"] = {"trusted": [f"{pem}\n" for pem in certificates]}
    body["runcmd"] = [[_INSTALL], ["sh", "-c", _JOIN], *_START]
    return body


_JOIN: Final = (
    f"set -a; . {install.ENVIRONMENT}; set +a; exec {install.BINARY} join --token-file {TOKEN_PATH}"
)
_START: Final = [
    ["systemctl", "daemon-reload"],
    ["systemctl", "enable", "--now", "plexd.service"],
]
"""Also where `join` failed: the service keeps trying with the same token file."""


def _seed(enrolment: DocumentFields) -> dict[str, Any]:
    base_url = options.http_url("enrolment.baseURL", enrolment.base_url)
    field_name = "enrolment.plexdDownloadURL"
    if options.ARCH_PLACEHOLDER in (enrolment.plexd_download_url or ""):
        rule = "must not hold {arch} in the seed form, which cannot choose"
        raise ContractError(field=field_name, rule=rule)
    url = options.http_url(field_name, enrolment.plexd_download_url)
    return {
        "write_files": [
            _file(TOKEN_PATH, "0600", plaintext(enrolment.token)),
            _file(_SEED_ENVIRONMENT, "0644", f"PLEXD_API_URL={base_url}\n"),
        ],
        "runcmd": [
            ["curl", "-fsSL", url, "-o", install.BINARY],
            ["chmod", "+x", install.BINARY],
            [
                "plexd",
                "register",
                f"--bootstrap-token-file={TOKEN_PATH}",
                f"--api-url={base_url}",
            ],
        ],
    }


def _file(path: str, permissions: str, content: str) -> dict[str, Any]:
    return {"path": path, "permissions": permissions, "content": content}


def _handle(name: str, value: str) -> str:
    if not _HANDLE.fullmatch(value):
        raise ContractError(field=name, rule="must be a name of letters, digits and . _ -")
    return value
