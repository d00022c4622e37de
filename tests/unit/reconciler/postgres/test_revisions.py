"""The revisions as files: their order, and that they travel in the package."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from reconciler.adapters.postgres.connection import migrate
from reconciler.adapters.postgres.migrations.versions.m0028_provisioning_reconciler import PARTS

VERSIONS = resources.files("reconciler.adapters.postgres.migrations") / "versions"
IN_PARTS = "0028_provisioning_reconciler"
"""The one whose statements are a folder of files, because they are many."""
REVISIONS = {
    "0001": "foundation",
    "0023": "management_fleet",
    "0026": "provisioning_broker",
    "0027": "provisioning_broker_deletion",
    "0028": "provisioning_reconciler",
}


def test_the_newest_is_the_last() -> None:
    assert migrate.head() == max(REVISIONS)


def test_every_revision_has_its_three_files() -> None:
    present = {item.name for item in VERSIONS.iterdir() if item.is_file()}

    wanted = {f"{number}_{name}" for number, name in REVISIONS.items()}
    assert present == {f"m{name}.py" for name in wanted} | {
        f"{name}.{way}.sql" for name in wanted - {IN_PARTS} for way in ("up", "down")
    }


def test_a_revision_in_parts_runs_every_file_of_its_folder() -> None:
    present = [item.name for item in (VERSIONS / IN_PARTS).iterdir()]

    assert sorted(present) == sorted([*(f"{part}.sql" for part in PARTS), "down.sql"])


FIRST_JUDGED = "0029"
"""After the first revision whose program may be older than its schema."""

TAKES_AWAY = [
    r"DROP (TABLE|COLUMN|FUNCTION|TYPE|VIEW)",
    r"RENAME (TO|COLUMN|CONSTRAINT)",
    r"ALTER COLUMN \w+ (SET NOT NULL|DROP DEFAULT|(SET DATA )?TYPE)",
    r"ADD COLUMN (?:(?!DEFAULT|,|;).)*NOT NULL(?!\s+DEFAULT)",
]
"""What a program of one version before would stumble over: it writes and reads what it knows."""

RAISES = "UPDATE plexsphere.schema_compatibility SET oldest_program"


def _takes_away(statements: str) -> list[str]:
    text = re.sub(r"--[^\n]*", "", statements)
    # What a function does inside is its own; that it is there, with its arguments, is what counts.
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    return [rule for rule in TAKES_AWAY if re.search(rule, text, re.IGNORECASE | re.DOTALL)]


def _silent(statements: dict[str, str]) -> list[str]:
    """Name the revisions that take something away and do not say so."""
    return [
        number
        for number, up in statements.items()
        if number >= FIRST_JUDGED and _takes_away(up) and RAISES not in up
    ]


def test_no_revision_takes_from_the_version_before_without_saying_so() -> None:
    statements = {
        number: (VERSIONS / f"{number}_{name}.up.sql").read_text(encoding="utf-8")
        for number, name in REVISIONS.items()
        if f"{number}_{name}" != IN_PARTS
    }

    assert _silent(statements) == [], "docs/operations/upgrade.md"


def test_the_next_revision_is_judged() -> None:
    following = f"{int(max(REVISIONS)) + 1:04}"

    assert _silent({following: "ALTER TABLE t DROP COLUMN c"}) == [following]
    assert _silent({following: f"ALTER TABLE t DROP COLUMN c; {RAISES} = '0028'"}) == []


@pytest.mark.parametrize(
    ("statement", "taken"),
    [
        ("ALTER TABLE t DROP COLUMN c", True),
        ("DROP TABLE t", True),
        ("ALTER TABLE t RENAME TO u", True),
        ("ALTER TABLE t ALTER COLUMN c SET NOT NULL", True),
        ("ALTER TABLE t ALTER COLUMN c TYPE text", True),
        ("ALTER TABLE t ADD COLUMN c text NOT NULL", True),
        ("ALTER TABLE t ADD COLUMN c text NOT NULL, ADD COLUMN d text DEFAULT ''", True),
        ("ALTER TABLE t ADD COLUMN c text NOT NULL DEFAULT ''", False),
        ("ALTER TABLE t ADD COLUMN c integer DEFAULT 0 NOT NULL", False),
        ("ALTER TABLE t ADD COLUMN c text", False),
        ("-- DROP TABLE t", False),
        ("CREATE TABLE t (c text NOT NULL)", False),
        ("CREATE FUNCTION f() RETURNS void AS $$ BEGIN DROP TABLE t; END $$", False),
    ],
)
def test_what_takes_something_away_is_recognised(statement: str, *, taken: bool) -> None:
    assert bool(_takes_away(statement)) == taken
