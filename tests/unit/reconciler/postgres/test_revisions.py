"""The revisions as files: their order, and that they travel in the package."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from reconciler.adapters.postgres.connection import migrate

REVISIONS = {
    "0001": "foundation",
    "0023": "management_fleet",
    "0026": "provisioning_broker",
    "0027": "provisioning_broker_deletion",
    "0028": "provisioning_record",
    "0029": "identity",
    "0030": "broker_audit",
    "0031": "unsettled_siblings",
    "0032": "shared_holds",
    "0033": "enrolment_speed",
    "0034": "registration_timeout",
    "0035": "recreation",
    "0036": "enrolment_upkeep",
    "0037": "schema_compatibility",
    "0038": "event_relay",
    "0039": "driver_leases",
    "0040": "teardown_facts",
    "0041": "retention",
    "0042": "driver_scale",
    "0044": "retry_audit",
    "0047": "provisioning_deadline",
    "0049": "enrolment_evidence",
    "0050": "attempts_and_operators",
    "0051": "earlier_keys",
}


def test_the_newest_is_the_last() -> None:
    assert migrate.head() == max(REVISIONS)


def test_every_revision_has_its_three_files() -> None:
    folder = resources.files("reconciler.adapters.postgres.migrations") / "versions"
    present = {item.name for item in folder.iterdir() if item.is_file()}

    wanted = {f"{number}_{name}" for number, name in REVISIONS.items()}
    assert present == {
        file for name in wanted for file in (f"{name}.up.sql", f"{name}.down.sql", f"m{name}.py")
    }


FIRST_JUDGED = "0038"
"""From the revision after which a program may be older than its schema."""

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


def _judged() -> list[str]:
    return [f"{number}_{name}" for number, name in REVISIONS.items() if number >= FIRST_JUDGED]


@pytest.mark.parametrize("name", _judged())
def test_a_revision_takes_nothing_from_the_version_before_or_says_so(name: str) -> None:
    folder = resources.files("reconciler.adapters.postgres.migrations") / "versions"
    up = (folder / f"{name}.up.sql").read_text(encoding="utf-8")

    assert not _takes_away(up) or RAISES in up, "docs/operations/upgrade.md"


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
