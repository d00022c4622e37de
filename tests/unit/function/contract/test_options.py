"""Which knobs are refused, with the field's name and never the value."""

from __future__ import annotations

import pytest

from function.contract.errors import ContractError
from function.render.documents import options

DIGEST = "sha256:" + "a" * 64
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(
    "value",
    [
        "https://api.example.org",
        "http://127.0.0.1:8443",
        "https://[::1]:8443/path?x=1",
        "  https://api.example.org/v1/  ",
    ],
)
def test_absolute_http_urls_are_taken_trimmed(value: str) -> None:
    assert options.http_url("f", value) == value.strip()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "   ",
        "api.example.org",
        "/v1",
        "ftp://api.example.org",
        "https://",
        "https://:8443",
        "https://host:notaport",
        "https://[::1",
        "https://user:secret@host",
        "https://host/a b",
        "https://host/\nX=1",
        "https://host/'",
        'https://host/"',
        "https://host/$(reboot)",
        "https://host/`reboot`",
        "https://host/\\",
        "https://host/" + "x" * 2048,
    ],
)
def test_other_urls_are_refused_without_being_quoted(value: str | None) -> None:
    with pytest.raises(ContractError) as caught:
        options.http_url("enrolment.baseURL", value)

    assert caught.value.field == "enrolment.baseURL"
    assert "secret" not in str(caught.value)
    assert "reboot" not in str(caught.value)


def test_the_architecture_is_put_into_the_download_url() -> None:
    urls = options.download_url("f", "https://d.example.org/plexd-linux-{arch}")

    assert urls == {
        "amd64": "https://d.example.org/plexd-linux-amd64",
        "arm64": "https://d.example.org/plexd-linux-arm64",
    }


def test_another_placeholder_is_refused() -> None:
    with pytest.raises(ContractError):
        options.download_url("f", "https://d.example.org/{os}")


@pytest.mark.parametrize(
    "value",
    [
        "registry.example.org/plexd:v0.8.0",
        "localhost:5000/team/plexd:1",
        f"registry.example.org/plexd@{DIGEST}",
        f"plexd:v1@{DIGEST}",
        "plexd:v1",
    ],
)
def test_pinned_images_are_taken(value: str) -> None:
    assert options.image("f", value) == value


def test_an_images_name_has_512_characters_at_most() -> None:
    name = "registry.example.org/plexd:v1"
    longest = name.replace("plexd", "p" * (512 - len(name) + len("plexd")))

    assert options.image("f", longest) == longest
    with pytest.raises(ContractError, match="512"):
        options.image("f", longest.replace("/p", "/pp"))


@pytest.mark.parametrize(
    "value",
    [
        None,
        " ",
        "registry.example.org/plexd",
        "localhost:5000/plexd",
        "plexd:latest",
        f"plexd:latest@{DIGEST}",
        "plexd:",
        "plexd@sha256:abc",
        "Plexd v1",
        "x" * 600 + ":v1",
    ],
)
def test_floating_or_broken_images_are_refused(value: str | None) -> None:
    with pytest.raises(ContractError, match=r"^enrolment\.plexdImage: "):
        options.image("enrolment.plexdImage", value)


def test_checksums_are_keyed_by_architecture() -> None:
    assert options.sha256("f", {"arm64": "b" * 64, "amd64": "a" * 64}) == {
        "amd64": "a" * 64,
        "arm64": "b" * 64,
    }


@pytest.mark.parametrize("sums", [{"riscv": "a" * 64}, {"amd64": "A" * 64}, {"amd64": "abc"}])
def test_other_checksums_are_refused(sums: dict[str, str]) -> None:
    with pytest.raises(ContractError):
        options.sha256("f", sums)


def test_a_bundle_is_taken_apart() -> None:
    assert options.ca_bundle("f", f"{PEM}\n\n{PEM}\n") == (PEM, PEM)


@pytest.mark.parametrize(
    "value",
    ["", "hello", f"{PEM}\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"],
)
def test_a_bundle_with_a_key_or_without_a_certificate_is_refused(value: str) -> None:
    with pytest.raises(ContractError) as caught:
        options.ca_bundle("enrolment.caBundle", value)

    assert "MIIB" not in str(caught.value)
