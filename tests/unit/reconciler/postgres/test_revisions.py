"""The revisions as files: their order, and that they travel in the package."""

from __future__ import annotations

from importlib import resources

from reconciler.adapters.postgres import migrate

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
