"""The pure parts of installing Crossplane and PostgreSQL."""

from pathlib import Path

import pytest

from dev import crossplane, objects, postgres


def test_webhooks_are_called_on_this_host_under_their_own_path() -> None:
    item = {
        "kind": "ValidatingWebhookConfiguration",
        "webhooks": [
            {
                "name": "a",
                "failurePolicy": "Fail",
                "clientConfig": {"caBundle": "x", "service": {"name": "s", "path": "/check"}},
            }
        ],
    }

    result = crossplane.local_webhooks(item, port=7, ca_bundle="y")

    assert result["webhooks"] == [
        {
            "name": "a",
            "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:7/check", "caBundle": "y"},
        }
    ]


def test_objects_come_from_files_folders_and_values_in_order(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.yaml").write_text("kind: B\n---\n---\nkind: C\n", encoding="utf-8")
    (tmp_path / "folder" / "a.yaml").write_text("kind: A\n", encoding="utf-8")
    (tmp_path / "folder" / "notes.md").write_text("kind: X\n", encoding="utf-8")
    (tmp_path / "d.yaml").write_text("kind: D\n", encoding="utf-8")

    found = objects.documents([tmp_path / "folder", tmp_path / "d.yaml", {"kind": "E"}])

    assert [item["kind"] for item in found] == ["A", "B", "C", "D", "E"]


def test_a_database_gets_its_own_connection_string() -> None:
    dsn = "postgresql://user:pass@127.0.0.1:5/postgres?sslmode=disable"

    answer = postgres.with_database(dsn, "other")

    assert answer == "postgresql://user:pass@127.0.0.1:5/other?sslmode=disable"


@pytest.mark.parametrize("name", ["", "Upper", 'a"b', "1a", "a" * 64])
def test_a_database_name_that_needs_quoting_is_refused(name: str, tmp_path: Path) -> None:
    server = postgres.Postgres(tmp_path)

    with pytest.raises(ValueError, match="cannot name database"):
        server.create_database(name)
