"""What names a build, and what the table of programs promises."""

from dataclasses import replace
from pathlib import Path

import pytest

from dev import binaries, toolchain

BINARY = binaries.Binary(module="m", package="example.org/m/cmd/x", stamps=("a.b=c",))


@pytest.fixture
def module_dir(tmp_path: Path) -> Path:
    (tmp_path / "go.mod").write_text("module m\n", encoding="utf-8")
    (tmp_path / "go.sum").write_text("sum\n", encoding="utf-8")
    return tmp_path


def key(binary: binaries.Binary, module_dir: Path, machine: str = "x86_64") -> str:
    return binaries.cache_key(binary, module_dir=module_dir, machine=machine)


def test_the_key_of_equal_inputs_is_equal(module_dir: Path) -> None:
    assert key(BINARY, module_dir) == key(replace(BINARY), module_dir)


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_the_key_changes_with_the_pinned_modules(module_dir: Path, name: str) -> None:
    before = key(BINARY, module_dir)

    (module_dir / name).write_text("other\n", encoding="utf-8")

    assert key(BINARY, module_dir) != before


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(BINARY, stamps=()), id="stamps"),
        pytest.param(replace(BINARY, package="example.org/m/cmd/y"), id="package"),
    ],
)
def test_the_key_changes_with_what_is_built(module_dir: Path, other: binaries.Binary) -> None:
    assert key(other, module_dir) != key(BINARY, module_dir)


def test_the_key_changes_with_the_machine(module_dir: Path) -> None:
    assert key(BINARY, module_dir, "x86_64") != key(BINARY, module_dir, "aarch64")


def test_moving_text_between_the_files_changes_the_key(module_dir: Path) -> None:
    (module_dir / "go.mod").write_text("ab", encoding="utf-8")
    (module_dir / "go.sum").write_text("c", encoding="utf-8")
    before = key(BINARY, module_dir)

    (module_dir / "go.mod").write_text("a", encoding="utf-8")
    (module_dir / "go.sum").write_text("bc", encoding="utf-8")

    assert key(BINARY, module_dir) != before


def test_linker_flags_strip_symbols_and_stamp() -> None:
    assert binaries.linker_flags(BINARY) == "-s -w -X a.b=c"


@pytest.mark.parametrize("name", binaries.BINARIES)
def test_every_program_has_a_module_with_its_sums(name: str) -> None:
    folder = toolchain.TOOLS / binaries.BINARIES[name].module

    assert binaries.BINARIES[name].package in (folder / "go.mod").read_text(encoding="utf-8")
    assert (folder / "go.sum").stat().st_size > 0


def test_versions_in_the_table_are_the_pinned_ones() -> None:
    kubernetes = (toolchain.TOOLS / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    crossplane = (toolchain.TOOLS / "crossplane" / "go.mod").read_text(encoding="utf-8")

    assert f"k8s.io/kubernetes {binaries.KUBERNETES_VERSION}" in kubernetes
    assert f"{binaries.CORE_MODULE} {binaries.CORE_VERSION}" in crossplane


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_CACHE", str(tmp_path))

    assert binaries.cached_path("etcd").is_relative_to(tmp_path)


def test_what_is_cached_is_only_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_CACHE", str(tmp_path))
    path = binaries.cached_path("etcd")
    path.parent.mkdir(parents=True)
    path.touch()
    lines: list[str] = []

    found = binaries.ensure(["etcd"], report=lines.append)

    assert found == {"etcd": path}
    assert lines == []


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(KeyError):
        binaries.ensure(["no-such-program"], report=print)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("go version go1.26.8 linux/amd64", (1, 26), id="a release"),
        pytest.param("go version go1.27rc1 linux/arm64", (1, 27), id="a candidate"),
        pytest.param("go version devel +abc", None, id="a build from source"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_reads_the_version_go_prints(text: str, expected: tuple[int, int] | None) -> None:
    assert toolchain.version_of(text) == expected


def test_an_interrupted_step_leaves_no_target(tmp_path: Path) -> None:
    target = tmp_path / "bin" / "x"

    def begin_and_stop() -> None:
        with toolchain.staged(target) as folder:
            (folder / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_stop()

    assert not target.exists()
    assert list(target.parent.iterdir()) == []


def test_a_finished_step_becomes_the_target(tmp_path: Path) -> None:
    target = tmp_path / "bin" / "x"

    with toolchain.staged(target) as folder:
        (folder / "whole").touch()

    assert [path.name for path in target.iterdir()] == ["whole"]
