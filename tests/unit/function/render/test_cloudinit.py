"""The enrolment document: what it holds, what it refuses, and that it says no secret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from function.contract.errors import ContractError
from function.contract.secrets import TokenPlaintext
from function.contract.strategy import DocumentForm
from function.render.documents import cloudinit
from tests.unit.function import given

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

ENROLMENT = cloudinit.DocumentFields(
    base_url="https://api.example.org",
    plexd_download_url="https://downloads.example.org/plexd-linux-{arch}",
    plexd_sha256={"amd64": "a" * 64, "arm64": "b" * 64},
    project_id=given.PROJECT,
    handle=given.XR_NAME,
    token=TokenPlaintext(given.TOKEN),
)
SEED = replace(
    ENROLMENT, form=DocumentForm.SEED, plexd_download_url="https://downloads.example.org/plexd"
)


def body(enrolment: cloudinit.DocumentFields) -> dict[str, Any]:
    document = cloudinit.user_data(enrolment)
    assert document.startswith("#cloud-config\n")
    loaded = yaml.safe_load(document)
    assert isinstance(loaded, dict)
    return loaded


def files(enrolment: cloudinit.DocumentFields) -> dict[str, tuple[str, str]]:
    entries = body(enrolment)["write_files"]
    return {entry["path"]: (entry["permissions"], entry["content"]) for entry in entries}


def test_the_document_writes_what_plexd_reads() -> None:
    written = files(ENROLMENT)

    assert {path: mode for path, (mode, _) in written.items()} == {
        "/etc/plexd/bootstrap-token": "0600",
        "/etc/plexd/environment": "0600",
        "/etc/plexd/config.yaml": "0600",
        "/etc/plexd/install-plexd.sh": "0755",
        "/etc/systemd/system/plexd.service": "0644",
    }
    assert written["/etc/plexd/bootstrap-token"][1] == given.TOKEN
    assert written["/etc/plexd/environment"][1].splitlines() == [
        "PLEXD_API='https://api.example.org'",
        f"PLEXD_PROJECT_ID='{given.PROJECT}'",
        f"PLEXD_RESOURCE_HANDLE='{given.XR_NAME}'",
        "PLEXD_BOOTSTRAP_TOKEN_FILE='/etc/plexd/bootstrap-token'",
    ]
    assert yaml.safe_load(written["/etc/plexd/config.yaml"][1]) == {
        "api": {"base_url": "https://api.example.org"},
        "registration": {
            "project_id": given.PROJECT,
            "resource_handle": given.XR_NAME,
            "token_file": "/etc/plexd/bootstrap-token",
        },
    }


def test_the_document_installs_joins_and_starts_in_this_order() -> None:
    join = (
        "set -a; . /etc/plexd/environment; set +a; "
        "exec /usr/local/bin/plexd join --token-file /etc/plexd/bootstrap-token"
    )

    assert body(ENROLMENT)["runcmd"] == [
        ["/etc/plexd/install-plexd.sh"],
        ["sh", "-c", join],
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", "--now", "plexd.service"],
    ]


def test_the_unit_does_not_wait_for_the_document_that_starts_it() -> None:
    unit = files(ENROLMENT)["/etc/systemd/system/plexd.service"][1]

    assert "cloud-final" not in unit
    assert "Restart=always\nRestartSec=5\n" in unit
    assert "ExecStart=/usr/local/bin/plexd up --config /etc/plexd/config.yaml\n" in unit
    assert "EnvironmentFile=-/etc/plexd/environment\n" in unit


def test_a_ca_bundle_is_written_and_trusted() -> None:
    enrolment = replace(ENROLMENT, ca_bundle=PEM * 2)

    assert files(enrolment)["/etc/plexd/ca.crt"] == ("0644", PEM * 2)
    assert body(enrolment)["ca_certs"] == {"trusted": [PEM, PEM]}
    assert "ca_certs" not in body(ENROLMENT)


def test_the_token_stands_once_and_never_in_a_command() -> None:
    for enrolment in (ENROLMENT, SEED):
        document = cloudinit.user_data(enrolment)

        assert document.count(given.TOKEN) == 1
        assert given.TOKEN not in str(body(enrolment)["runcmd"])


def test_the_seed_form_is_its_literal_three_steps() -> None:
    assert files(SEED) == {
        "/etc/plexd/bootstrap-token": ("0600", given.TOKEN),
        "/etc/plexd/plexd.env": ("0644", "PLEXD_API_URL=https://api.example.org\n"),
    }
    assert body(SEED)["runcmd"] == [
        ["curl", "-fsSL", "https://downloads.example.org/plexd", "-o", "/usr/local/bin/plexd"],
        ["chmod", "+x", "/usr/local/bin/plexd"],
        [
            "plexd",
            "register",
            "--bootstrap-token-file=/etc/plexd/bootstrap-token",
            "--api-url=https://api.example.org",
        ],
    ]


def test_the_seed_form_cannot_choose_an_architecture() -> None:
    with pytest.raises(ContractError, match=r"^enrolment\.plexdDownloadURL: "):
        cloudinit.user_data(replace(ENROLMENT, form=DocumentForm.SEED))


@pytest.mark.parametrize("enrolment", [ENROLMENT, SEED], ids=["plexd", "seed"])
def test_the_document_is_the_same_every_time_and_small(enrolment: cloudinit.DocumentFields) -> None:
    documents = {cloudinit.user_data(enrolment) for _ in range(3)}

    assert len(documents) == 1
    assert len(documents.pop()) < 4096


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"base_url": None}, "enrolment.baseURL"),
        ({"base_url": "https://x/\nEVIL=1"}, "enrolment.baseURL"),
        ({"plexd_download_url": ""}, "enrolment.plexdDownloadURL"),
        ({"plexd_sha256": {"amd64": "x"}}, "enrolment.plexdSHA256.amd64"),
        ({"ca_bundle": "nothing"}, "enrolment.caBundle"),
        ({"project_id": "a'b"}, "project id"),
        ({"handle": "a b"}, "resource handle"),
        ({"token": TokenPlaintext("")}, "bootstrap.token"),
        ({"token": TokenPlaintext("two words")}, "bootstrap.token"),
        ({"token": TokenPlaintext("line\nline")}, "bootstrap.token"),
        ({"token": TokenPlaintext("x" * 513)}, "bootstrap.token"),
    ],
)
def test_it_fails_closed_and_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(ContractError) as caught:
        cloudinit.user_data(replace(ENROLMENT, **changes))

    assert caught.value.field == field
    assert "EVIL" not in str(caught.value)


def test_plain_http_needs_a_checksum() -> None:
    plain = replace(ENROLMENT, plexd_download_url="http://10.0.0.1/plexd", plexd_sha256={})

    with pytest.raises(ContractError, match=r"^enrolment\.plexdSHA256: is required"):
        cloudinit.user_data(plain)


def test_nothing_shows_the_token_by_accident() -> None:
    assert given.TOKEN not in repr(ENROLMENT)
    assert given.TOKEN not in str(ENROLMENT)
