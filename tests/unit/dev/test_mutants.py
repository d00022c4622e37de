"""Changes of the code are small, leave it a program, and are drawn alike by one seed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dev import mutants
from dev.mutations import is_in_function, is_program, mutate, mutations

SOURCE = '''
def decide(left, right, *, there):
    """Ünicode before what is changed."""
    tell(left)
    if not there and left < 3:
        return left + right
    return True
'''


@pytest.mark.parametrize(
    "change",
    [
        "`tell(left)` -> `pass`",
        "`not there` -> `(there)`",
        "`not there and left < 3` -> `((not there) or (left < 3))`",
        "`not there and left < 3` -> `((not there))`",
        "`not there and left < 3` -> `(not (not there and left < 3))`",
        "`left < 3` -> `(left <= 3)`",
        "`3` -> `4`",
        "`left + right` -> `(left - right)`",
        "`return left + right` -> `return None`",
        "`True` -> `False`",
    ],
)
def test_each_kind_of_change_is_among_them(change: str) -> None:
    assert change in {str(each) for each in mutations(SOURCE)}


def test_each_leaves_another_program() -> None:
    made = [mutate(SOURCE, each) for each in mutations(SOURCE)]

    assert all(is_program(each) for each in made)
    assert len({ast.dump(ast.parse(each)) for each in (SOURCE, *made)}) == len(made) + 1


@pytest.mark.parametrize(("line", "called"), [(1, False), (2, False), (4, True), (7, True)])
def test_what_runs_at_import_is_told_from_what_is_called(line: int, called: bool) -> None:
    assert is_in_function(SOURCE, line) == called


def test_a_module_is_imported_by_name_or_by_what_is_taken_of_it() -> None:
    root = Path(mutants.__file__).parents[1]

    found = mutants.importers(root, "reconciler/domain/guard/lease.py")

    assert "reconciler/app/controller/leader_election.py" in found
    assert "reconciler/domain/guard/lease.py" not in found


def test_a_docstring_is_left_alone() -> None:
    assert all("Ünicode" in mutate(SOURCE, each) for each in mutations(SOURCE))


def test_one_seed_draws_the_same_changes_and_another_others() -> None:
    first = mutants.drawn(20, 1)

    assert first == mutants.drawn(20, 1) != mutants.drawn(20, 2)
    assert len(set(first)) == 20


def test_what_was_found_before_is_not_asked_again(tmp_path: Path) -> None:
    state = tmp_path / "mutants.jsonl"
    state.write_text('{"mutant": "a", "noticed": ""}\n{"mutant": "b", "noticed": "FAILED x"}\n')

    assert mutants.known(state) == {"a": "", "b": "FAILED x"}
    assert mutants.known(tmp_path / "none") == {}


def test_the_score_names_what_nothing_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = mutants.drawn(3, 1)

    mutants.tell(
        {str(one): "FAILED x", str(two): "", str(three): mutants.UNKNOWN}, [one, two, three]
    )

    told = capsys.readouterr().out
    assert told.startswith("1 of 2 noticed (50%); 3 drawn")
    assert f"nothing noticed {two}" in told
    assert str(three) not in told
