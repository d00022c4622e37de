"""Documents against the JSON schema that Debian's cloud-init package carries."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from function.render.documents import cloudinit, compressed
from tests.unit.function.render.test_budget import LARGE
from tests.unit.function.render.test_cloudinit import ENROLMENT, PEM, SEED

DOWNLOAD_TIMEOUT_S = 120
SCHEMA = "**/cloudinit/config/schemas/schema-cloud-config-v1.json"

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The package's schema; a machine without apt or a mirror skips, and says so."""
    folder = tmp_path_factory.mktemp("cloud-init")
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("cloud-init's schema cannot be had: no apt-get here")
    try:
        _run(folder, "apt-get", "download", "cloud-init")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("cloud-init's schema cannot be had: its package does not download")
    (package,) = folder.glob("cloud-init_*.deb")
    _run(folder, "dpkg-deb", "-x", str(package), "unpacked")
    (found,) = folder.glob(SCHEMA)
    loaded = json.loads(found.read_text())
    assert isinstance(loaded, dict)
    return loaded


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=DOWNLOAD_TIMEOUT_S)


def faults(document: str, schema: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft4Validator(schema)
    return [error.message for error in validator.iter_errors(yaml.safe_load(document))]


@pytest.mark.parametrize("enrolment", [ENROLMENT, SEED], ids=["plexd", "seed"])
def test_the_document_passes_cloud_inits_own_schema(
    schema: dict[str, Any], enrolment: cloudinit.DocumentFields
) -> None:
    assert faults(cloudinit.user_data(enrolment), schema) == []


def test_the_document_with_a_ca_passes_too(schema: dict[str, Any]) -> None:
    changed = cloudinit.DocumentFields(
        base_url=ENROLMENT.base_url,
        plexd_download_url=ENROLMENT.plexd_download_url,
        plexd_sha256=ENROLMENT.plexd_sha256,
        ca_bundle=PEM,
        project_id=ENROLMENT.project_id,
        handle=ENROLMENT.handle,
        token=ENROLMENT.token,
    )

    assert faults(cloudinit.user_data(changed), schema) == []


@pytest.mark.parametrize("enrolment", [LARGE, SEED], ids=["ca", "seed"])
def test_the_compressed_document_passes_too(
    schema: dict[str, Any], enrolment: cloudinit.DocumentFields
) -> None:
    small = cloudinit.document(compressed.compressed(cloudinit.body(enrolment)))

    assert "encoding: 'gz+b64'" in small or enrolment is SEED
    assert faults(small, schema) == []


def test_the_schema_can_refuse(schema: dict[str, Any]) -> None:
    assert faults("#cloud-config\nwrite_files: {path: x}\n", schema)
