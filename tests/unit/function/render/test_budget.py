"""Each cloud's limit to the byte, and what a document that is over it becomes."""

from __future__ import annotations

import base64
import gzip
import random
from dataclasses import replace
from typing import Any

import pytest
import yaml

from dev.cloud import document
from function.contract.errors import ContractError
from function.contract.strategy import CloudProvider, InjectionStrategy
from function.render.documents import budget, cloudinit, compressed
from function.render.fields import inject
from tests.unit.function import given
from tests.unit.function.render.test_cloudinit import ENROLMENT, SEED

EVERY = pytest.mark.parametrize("provider", list(CloudProvider))
RAW_LIMITS = {
    CloudProvider.AWS: 16_384,
    CloudProvider.AZURE: 65_535,
    CloudProvider.GCP: 262_144,
    CloudProvider.HETZNER: 32_768,
    CloudProvider.OPENSTACK: 49_149,
    CloudProvider.GENERIC: 16_384,
}


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)  # noqa: S311 - the same in every run


def bundle(size: int) -> str:
    """Certificates of 900 bytes that nobody can compress, that much text or a little more."""
    made = ""
    while len(made) < size:
        text = base64.encodebytes(noise(900, seed=len(made))).decode()
        made += f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"
    return made


def sized(size: int, extra: str = "") -> dict[str, Any]:
    """A body whose document has that many bytes."""
    empty: dict[str, Any] = {"runcmd": ["x" + extra]}
    missing = size - len(cloudinit.document(empty).encode())
    return {"runcmd": ["x" * (missing + 1) + extra]}


@EVERY
def test_each_cloud_takes_its_limit_and_not_a_byte_more(provider: CloudProvider) -> None:
    limit = RAW_LIMITS[provider]

    assert len(budget.fit(provider, sized(limit))) == limit
    with pytest.raises(ContractError) as caught:
        budget.fit(provider, sized(limit + 1))

    assert (caught.value.field, caught.value.reason) == ("spec.userData", "UserDataTooLarge")


def test_novas_limit_is_one_of_base64() -> None:
    limit = RAW_LIMITS[CloudProvider.OPENSTACK]

    assert len(base64.b64encode(b"x" * limit)) <= 65_535
    assert len(base64.b64encode(b"x" * (limit + 1))) > 65_535
    with pytest.raises(ContractError, match=r"66668 bytes of base64 .* accepts at most 65535$"):
        budget.fit(CloudProvider.OPENSTACK, sized(50_000))


def test_limits_count_bytes_not_characters() -> None:
    assert len(budget.fit(CloudProvider.AWS, sized(16_384, "ä"))) == 16_383
    with pytest.raises(ContractError):
        budget.fit(CloudProvider.AWS, sized(16_385, "ä"))


def test_the_refusal_names_the_limit_and_both_sizes_and_no_content() -> None:
    body = cloudinit.body(replace(ENROLMENT, ca_bundle=bundle(16_000)))
    plain = len(cloudinit.document(body))
    small = len(cloudinit.document(compressed.compressed(body)))

    with pytest.raises(ContractError) as caught:
        budget.fit(CloudProvider.AWS, body)

    assert str(caught.value) == (
        f"spec.userData: holds {plain} bytes and {small} compressed, but aws accepts at most 16384"
    )


@EVERY
@pytest.mark.parametrize("enrolment", [ENROLMENT, SEED], ids=["plexd", "seed"])
def test_a_document_within_the_limit_stays_as_it_is(
    provider: CloudProvider, enrolment: cloudinit.DocumentFields
) -> None:
    assert budget.fit(provider, cloudinit.body(enrolment)) == cloudinit.user_data(enrolment)


LARGE = replace(ENROLMENT, ca_bundle=bundle(11_000))


def test_a_document_over_the_limit_is_made_smaller() -> None:
    material = inject.Material(enrolment=LARGE, plexd_image=None, provider=CloudProvider.AWS)

    made = inject.fields(InjectionStrategy.CLOUD_INIT_USER_DATA, material)[inject.USER_DATA]

    assert len(cloudinit.user_data(LARGE)) > 24_000
    assert len(made.encode()) <= 16_384
    assert made.startswith("#cloud-config\n")


def test_a_larger_cloud_gets_the_same_document_plain() -> None:
    made = budget.fit(CloudProvider.HETZNER, cloudinit.body(LARGE))

    assert made == cloudinit.user_data(LARGE)


@EVERY
def test_each_cloud_takes_its_limit_of_what_was_made_smaller_too(provider: CloudProvider) -> None:
    limit = RAW_LIMITS[provider]
    file = {"path": "/text", "permissions": "0600", "content": "again and " * 30_000}

    def body(filling: int) -> dict[str, Any]:
        return {"write_files": [file], "runcmd": ["x" * filling]}

    missing = limit - len(cloudinit.document(compressed.compressed(body(1))))
    assert len(budget.fit(provider, body(1 + missing))) == limit
    with pytest.raises(ContractError, match=r" compressed, but "):
        budget.fit(provider, body(2 + missing))


def written(text: str) -> dict[str, tuple[int, bytes]]:
    """What a machine has on disk after the document's `write_files`."""
    parsed = document.parse(text)
    assert parsed.faults == ()
    files: dict[str, tuple[int, bytes]] = {}
    for file in parsed.files:
        before = files[file.path][1] if file.append else b""
        files[file.path] = (file.mode, before + file.content)
    return files


@pytest.mark.parametrize("enrolment", [ENROLMENT, LARGE, SEED], ids=["plexd", "ca", "seed"])
def test_the_smaller_document_does_the_same(enrolment: cloudinit.DocumentFields) -> None:
    plain = cloudinit.user_data(enrolment)

    small = cloudinit.document(compressed.compressed(cloudinit.body(enrolment)))

    assert written(small) == written(plain)
    assert document.parse(small).ca_certs == document.parse(plain).ca_certs
    assert document.parse(small).commands == document.parse(plain).commands


def test_certificates_stand_once_and_the_token_stays_readable() -> None:
    small = cloudinit.document(compressed.compressed(cloudinit.body(LARGE)))

    assert small.count("BEGIN CERTIFICATE") == bundle(11_000).count("BEGIN CERTIFICATE")
    assert small.count(given.TOKEN) == 1


def test_a_file_is_packed_only_where_that_is_shorter() -> None:
    files = [
        {"path": "/short", "permissions": "0600", "content": noise(3000).hex()[:90]},
        {"path": "/text", "permissions": "0600", "content": "again and " * 300},
    ]

    made = compressed.compressed({"write_files": files})

    assert made["write_files"][0] == files[0]
    assert made["write_files"][1]["encoding"] == "gz+b64"
    unpacked = gzip.decompress(base64.b64decode(made["write_files"][1]["content"]))
    assert unpacked.decode() == files[1]["content"]
    assert "encoding" not in files[1]


def test_a_file_is_packed_from_the_first_byte_that_it_saves() -> None:
    def file(content: str) -> dict[str, Any]:
        return {"path": "/text", "permissions": "0600", "content": content}

    def packed(content: str) -> int:
        """Bytes that stand in the document instead of the content."""
        return len("encoding: gz+b64") + len(base64.b64encode(compressed.gzipped(content.encode())))

    start = noise(100).hex()
    even = next(text for n in range(400) if packed(text := start + "a" * n) == len(text))
    longer = next(text for n in range(8) if packed(text := even + "a" * n) < len(text))

    assert compressed.compressed({"write_files": [file(even)]})["write_files"] == [file(even)]
    (made,) = compressed.compressed({"write_files": [file(longer)]})["write_files"]
    assert made["encoding"] == "gz+b64"


def test_gzip_is_the_same_every_time_and_names_neither_time_nor_system() -> None:
    data = b"again and " * 300

    packed = {compressed.gzipped(data) for _ in range(3)}

    assert len(packed) == 1
    assert packed.pop()[:10] == bytes.fromhex("1f8b 08 00 00000000 02 ff")


def test_what_is_neither_file_nor_certificate_stays() -> None:
    body = {"packages": ["curl"], "ca_certs": {"remove_defaults": True, "trusted": ["pem\n"]}}

    made = compressed.compressed(body)

    assert yaml.safe_load(cloudinit.document(made)) == body
    assert compressed.compressed({"packages": ["curl"]}) == {"packages": ["curl"]}
