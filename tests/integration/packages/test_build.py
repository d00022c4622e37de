"""Packages built by Crossplane's own command, and pushed to a registry."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dev import packages, xpkg
from dev.packages import CONFIGURATION, FUNCTION, PACKAGES, Package, Release
from dev.registry import Registry
from dev.supervisor import Supervisor
from dev.xpkg import PackageError

pytestmark = pytest.mark.integration

USER = "2000:2000"
COMMAND = ["/venv/fn/bin/function"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    with Supervisor(folder) as supervisor:
        started = Registry(folder)
        started.start(supervisor, report=print)
        yield started


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_built_twice_is_the_same_to_the_byte(package: Package, tmp_path: Path) -> None:
    first, second = (
        packages.build(package, Release(), tmp_path / name / "a.xpkg") for name in ("1", "2")
    )

    assert first.read_bytes() == second.read_bytes()


def test_the_configuration_holds_its_xrd_and_composition_and_nothing_else(tmp_path: Path) -> None:
    built = packages.build(CONFIGURATION, Release(), tmp_path / "a.xpkg")

    assert [(body["kind"], body["metadata"]["name"]) for body in xpkg.contents(built)] == [
        ("Configuration", "configuration-provisioning-broker"),
        ("Composition", "provisionedresource"),
        ("CompositeResourceDefinition", "provisionedresources.provisioning.plexsphere.com"),
    ]


def test_the_function_holds_the_schemas_of_its_inputs(tmp_path: Path) -> None:
    built = packages.build(FUNCTION, Release(), tmp_path / "a.xpkg")

    metadata, *inputs = xpkg.contents(built)
    assert metadata["kind"] == "Function"
    assert {body["spec"]["group"] for body in inputs} == {"broker.fn.plexsphere.com"}


def test_a_runtime_is_embedded_beside_the_package(tmp_path: Path) -> None:
    runtime = image(tmp_path / "runtime.tar", {"User": USER, "Entrypoint": COMMAND})

    built = packages.build(FUNCTION, Release(), tmp_path / "a.xpkg", runtime=runtime)

    assert xpkg.contents(built)[0]["metadata"]["name"] == FUNCTION.name
    config = xpkg.runtime_config(built)
    assert (config["User"], config["Entrypoint"]) == (USER, COMMAND)


def test_a_runtime_that_runs_as_root_makes_no_package(tmp_path: Path) -> None:
    runtime = image(tmp_path / "runtime.tar", {"Entrypoint": COMMAND})

    with pytest.raises(PackageError, match="cannot accept runtime"):
        packages.build(FUNCTION, Release(), tmp_path / "a.xpkg", runtime=runtime)

    assert not (tmp_path / "a.xpkg").exists()


def test_a_pushed_package_is_found_under_its_tag(registry: Registry, tmp_path: Path) -> None:
    built = packages.build(FUNCTION, Release(), tmp_path / "a.xpkg")

    digest = registry.push(built, Release().reference(FUNCTION))

    assert digest.startswith("sha256:")
    assert registry.push(built, Release().reference(FUNCTION)) == digest
    with pytest.raises(PackageError, match="no such tag"):
        registry.digest(f"plexsphere/{FUNCTION.name}:v9.9.9")


def test_the_command_builds_every_package_into_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packages.main(["--output", str(tmp_path), "--version", "v1.2.3"])

    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        f"{package.name}-v1.2.3.xpkg" for package in PACKAGES
    )
    assert capsys.readouterr().out.count("push to xpkg.example.org/plexsphere/") == len(PACKAGES)


def image(target: Path, config: Mapping[str, object]) -> Path:
    """Write an image of one layer as `docker save` does."""
    layer = tarred({"venv/fn/bin/function": b"#!/bin/sh\n"})
    digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    described = {
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": digests},
    }
    manifest = [{"Config": "config.json", "RepoTags": [], "Layers": ["layer.tar.gz"]}]
    files = {
        "manifest.json": json.dumps(manifest).encode(),
        "config.json": json.dumps(described).encode(),
        "layer.tar.gz": gzip.compress(layer, mtime=0),
    }
    target.write_bytes(tarred(files))
    return target


def tarred(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
