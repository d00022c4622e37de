"""What a release puts into packages, and what is not accepted as one."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dev import packages, xpkg
from dev.objects import Object
from dev.packages import CONFIGURATION, FUNCTION, PACKAGES, Release
from dev.stack import FUNCTION_NAME
from dev.xpkg import PackageError
from function.__version__ import __version__

ELSEWHERE = Release(version="v1.2.3", prefix="registry.example.com:5000/acme/platform")
META: Object = {"kind": "Function", "metadata": {"name": "f"}}
INPUT: Object = {"kind": "CustomResourceDefinition", "metadata": {"name": "i"}}


@pytest.mark.parametrize("version", ["", "1.2.3", "v1", "v1.2", "latest", "v1.2.3+build"])
def test_a_release_has_a_full_semantic_version(version: str) -> None:
    with pytest.raises(PackageError, match=r"not of the form v1\.2\.3"):
        Release(version=version)


@pytest.mark.parametrize("prefix", ["", "xpkg.example.org", "xpkg.example.org/acme/", "A/b"])
def test_a_release_goes_to_an_organisation_of_a_registry(prefix: str) -> None:
    with pytest.raises(PackageError, match="not of the form registry/organisation"):
        Release(prefix=prefix)


def test_the_default_release_is_what_git_says() -> None:
    assert Release().version == f"v{__version__}"
    assert Release().installed_name(FUNCTION) == FUNCTION_NAME
    assert Release().applied("a plexsphere-function-provisioning-broker b") == (
        "a plexsphere-function-provisioning-broker b"
    )


def test_a_configuration_needs_the_function_of_its_own_release() -> None:
    metadata = packages.objects(CONFIGURATION, ELSEWHERE)[0]

    assert metadata["spec"]["dependsOn"] == [
        {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "Function",
            "package": f"{ELSEWHERE.prefix}/{FUNCTION.name}",
            "version": ">=v1.2.3",
        }
    ]


@pytest.mark.parametrize("release", [Release(), ELSEWHERE], ids=["default", "elsewhere"])
def test_compositions_name_the_function_that_the_dependency_brings(release: Release) -> None:
    found = packages.objects(CONFIGURATION, release)

    steps = [
        step["functionRef"]["name"]
        for body in found
        if body["kind"] == "Composition"
        for step in body["spec"]["pipeline"]
    ]
    assert steps == [release.installed_name(FUNCTION)]


@pytest.mark.parametrize(
    ("repository", "name"),
    [
        pytest.param("xpkg.example.org/acme/function-a", "acme-function-a", id="plain"),
        pytest.param("r.example.org:5000/a/b/function.c", "a-b-function-c", id="deep"),
        pytest.param("r.example.org/acme/function_a", "acme-functiona", id="dropped"),
        pytest.param(f"r.example.org/acme/{'x' * 70}", f"acme-{'x' * 58}", id="cut"),
    ],
)
def test_names_of_installed_packages_are_crossplanes(repository: str, name: str) -> None:
    assert packages.installed_name(repository) == name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_releases_of_equal_content_differ(package: packages.Package) -> None:
    first, second = (packages.objects(package, Release(version=v)) for v in ("v1.0.0", "v1.0.1"))

    assert first[0] != second[0]
    assert first[0]["metadata"]["annotations"][packages.VERSION_ANNOTATION] == "v1.0.0"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_table_names_what_the_metadata_names(package: packages.Package) -> None:
    metadata, *others = packages.objects(package, Release())

    assert metadata["metadata"]["name"] == package.name
    assert {body["kind"] for body in others} == package.kinds


def test_a_part_that_finds_no_file_is_refused() -> None:
    empty = replace(FUNCTION, parts=("package/no-such-folder/*.yaml",))

    with pytest.raises(PackageError, match="no file package/no-such-folder"):
        packages.objects(empty, Release())


def test_objects_in_another_order_and_with_a_status_are_accepted() -> None:
    other: Object = {"kind": "CustomResourceDefinition", "metadata": {"name": "j"}}

    packages.check(FUNCTION, [META, INPUT, other], [META, {**other, "status": {}}, INPUT])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param([META], "differs from its sources", id="missing"),
        pytest.param([META, INPUT, INPUT], "differs from its sources", id="twice"),
        pytest.param([META, {**INPUT, "spec": 1}], "differs from its sources", id="changed"),
        pytest.param([META, INPUT, {**META, "kind": "Pod"}], "it holds Pod f", id="foreign"),
        pytest.param([META, INPUT, META], "it holds Function f", id="two metadata objects"),
        pytest.param([INPUT, INPUT], "does not begin with its metadata", id="no metadata"),
    ],
)
def test_a_package_that_holds_something_else_is_refused(found: list[Object], reason: str) -> None:
    with pytest.raises(PackageError, match=reason):
        packages.check(FUNCTION, [META, INPUT], found)


@pytest.mark.parametrize(
    "config",
    [
        {"User": "2000:2000"},
        {"User": "0", "Entrypoint": ["/f"]},
        {"User": "nonroot", "Entrypoint": ["/f"]},
        {"Entrypoint": ["/f"]},
    ],
)
def test_a_runtime_that_clusters_could_not_run_is_refused(config: Object) -> None:
    with pytest.raises(PackageError, match="cannot accept runtime"):
        packages.check_runtime(FUNCTION, config)


def test_the_objects_of_a_package_are_read_in_their_order(tmp_path: Path) -> None:
    package = archived(tmp_path, layer({"package.yaml": "---\nkind: A\n---\nkind: B\n"}))

    assert xpkg.contents(package) == [{"kind": "A"}, {"kind": "B"}]


@pytest.mark.parametrize(
    ("content", "marks", "reason"),
    [
        pytest.param({"package.yaml": "kind: A"}, (), "not one layer is marked", id="unmarked"),
        pytest.param({"package.yaml": "kind: A"}, ("0" * 64,), "not one layer", id="other"),
        pytest.param({"a": "", "package.yaml": ""}, None, "holds a, package.yaml", id="more"),
        pytest.param({"other.yaml": ""}, None, "holds other.yaml", id="no package.yaml"),
    ],
)
def test_an_archive_that_is_no_package_is_refused(
    tmp_path: Path, content: Mapping[str, str], marks: tuple[str, ...] | None, reason: str
) -> None:
    package = archived(tmp_path, layer(content), marks=marks)

    with pytest.raises(PackageError, match=reason):
        xpkg.contents(package)


def test_a_layer_that_was_changed_afterwards_is_refused(tmp_path: Path) -> None:
    content = layer({"package.yaml": "kind: A"})
    mark = hashlib.sha256(b"before").hexdigest()
    package = archived(tmp_path, content, marks=(mark,), name=f"{mark}.tar.gz")

    with pytest.raises(PackageError, match="another digest"):
        xpkg.contents(package)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xpkg").write_text("no archive", encoding="utf-8")

    with pytest.raises(PackageError, match="it is not an archive"):
        xpkg.contents(tmp_path / "a.xpkg")


def layer(files: Mapping[str, str]) -> bytes:
    """Pack files as an image's layer."""
    return gzip.compress(tarred({name: text.encode() for name, text in files.items()}), mtime=0)


def tarred(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def archived(
    folder: Path, content: bytes, *, marks: tuple[str, ...] | None = None, name: str = ""
) -> Path:
    """Write an image of one layer; marked as base is what `marks` says, by default that layer."""
    digest = hashlib.sha256(content).hexdigest()
    name = name or f"{digest}.tar.gz"
    marked = (digest,) if marks is None else marks
    labels = {f"io.crossplane.xpkg:sha256:{mark}": "base" for mark in marked}
    files = {
        "manifest.json": json.dumps([{"Config": "config", "Layers": [name]}]).encode(),
        "config": json.dumps({"config": {"Labels": labels}}).encode(),
        name: content,
    }
    package = folder / "a.xpkg"
    package.write_bytes(tarred(files))
    return package
