"""`broker catalog import`: files in, files out, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.commands.catalog import catalog
from tests.unit.reconciler.domain.catalog import given


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A catalogue with one good blueprint."""
    target = tmp_path / "catalog" / given.SLUG
    target.mkdir(parents=True)
    for name, content in given.source().files.items():
        (target / name).write_bytes(content)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(catalog, ["import", *map(str, arguments)])


def test_a_catalogue_is_printed(folder: Path) -> None:
    result = run(folder)

    assert result.exit_code == 0, result.stderr
    assert yaml.safe_load(result.stdout) == given.judged().manifest


def test_a_catalogue_is_written_one_file_each_the_same_each_time(folder: Path) -> None:
    out = folder / "made"

    first = run(folder, "--out", out)
    (file,) = out.iterdir()
    content = file.read_bytes()
    run(folder, "--out", out)

    assert first.exit_code == 0, first.stderr
    assert file.name == "small-vm-v1alpha1.yaml"
    assert first.stdout == f"{file}\n"
    assert yaml.safe_load(content) == given.judged().manifest
    assert [each.read_bytes() for each in out.iterdir()] == [content]


def test_one_wrong_blueprint_leaves_all_unwritten_and_says_why(folder: Path) -> None:
    bad = folder / "catalog" / "bad"
    bad.mkdir()
    (bad / "metadata.json").write_text("{")

    result = run(folder, "--out", folder / "made")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "catalog/bad/metadata.json: is not valid JSON in line 1",
        "catalog/bad/xrd.yaml: is missing",
        "catalog/bad/composition.yaml: is missing",
        f"broker: cannot import {folder}: 3 findings",
    ]
    assert not (folder / "made").exists()


def test_a_note_does_not_stop_an_import(folder: Path) -> None:
    kept = [each for each in given.patches_of_a_machine() if "size" not in each["fromFieldPath"]]
    composition = folder / "catalog" / given.SLUG / "composition.yaml"
    composition.write_text(yaml.safe_dump(given.composition(kept)))

    result = run(folder)

    assert result.exit_code == 0
    assert result.stderr.startswith("note: catalog/small-vm/metadata.json: ")


@pytest.mark.parametrize("made", [(), ("catalog",)])
def test_what_is_no_catalogue_is_one_line(tmp_path: Path, made: tuple[str, ...]) -> None:
    for name in made:
        (tmp_path / name).mkdir()

    result = run(tmp_path)

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_file_that_is_too_large_is_not_read_whole(folder: Path) -> None:
    with (folder / "catalog" / given.SLUG / "xrd.yaml").open("wb") as file:
        file.truncate(2**33)

    result = run(folder)

    assert result.exit_code == 1
    assert "xrd.yaml: is larger than 1048576 bytes" in result.stderr
