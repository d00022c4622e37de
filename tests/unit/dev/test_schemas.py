"""Which files of a Go module are taken, and that only the pinned ones are."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dev import schemas
from dev.process import ProcessError

MODULE, VERSION, SUM = "example.org/crds", "v1.2.3", "h1:abc="


@pytest.fixture(autouse=True)
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = tmp_path / "schemas.sum"
    sums.write_text(f"{MODULE} {VERSION} {SUM}\n", encoding="ascii")
    monkeypatch.setattr(schemas, "SUMS", sums)
    monkeypatch.setenv("BROKER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def downloaded(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "modules" / f"example.org_crds@{VERSION}"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "module.zip", "w") as archive:
        archive.writestr(f"{MODULE}@{VERSION}/crds/a.yaml", "kind: A\n")
        archive.writestr(f"{MODULE}@{VERSION}/crds/b.yaml", "kind: B\n")


@pytest.mark.usefixtures("downloaded")
def test_a_file_is_found_below_the_root_of_its_module() -> None:
    assert schemas.module_file(MODULE, VERSION, "crds/b.yaml") == b"kind: B\n"


@pytest.mark.usefixtures("downloaded")
def test_a_file_that_the_module_has_not_is_an_error() -> None:
    with pytest.raises(KeyError, match="c\\.yaml"):
        schemas.module_file(MODULE, VERSION, "crds/c.yaml")


@pytest.mark.usefixtures("downloaded")
def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "FILE_MAX_BYTES", 7)

    with pytest.raises(ProcessError, match="larger than 7 bytes"):
        schemas.module_file(MODULE, VERSION, "crds/a.yaml")


@pytest.mark.parametrize(
    ("module", "version"), [(MODULE, "v1.2.4"), ("example.org/other", VERSION)]
)
def test_a_module_that_is_not_pinned_is_refused(module: str, version: str) -> None:
    with pytest.raises(KeyError, match=version):
        schemas.module_file(module, version, "crds/a.yaml")


def stand_in(folder: Path, script: str) -> Path:
    program = folder / "go"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_a_module_other_than_the_pinned_one_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = stand_in(tmp_path, """touch zip; echo '{"Sum": "h1:other=", "Zip": "zip"}'""")
    monkeypatch.setattr(schemas, "go_program", lambda _: go)

    with pytest.raises(ProcessError, match="h1:other=, not the pinned h1:abc="):
        schemas.module_file(MODULE, VERSION, "crds/a.yaml")

    assert list((tmp_path / "cache" / "modules").iterdir()) == []


def test_a_download_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = stand_in(tmp_path, "echo 'no such host' >&2; exit 1")
    monkeypatch.setattr(schemas, "go_program", lambda _: go)

    with pytest.raises(ProcessError, match=r"cannot download .*: no such host"):
        schemas.module_file(MODULE, VERSION, "crds/a.yaml")
