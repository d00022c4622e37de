"""The table of the reconciler's rights says what the manifests give, verb by verb."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
ROLES = {
    "everywhere": ("provisioning-broker-reconciler", "provisioning-broker-bindings"),
    "Project": ("provisioning-broker-project-own",),
}


class Right(NamedTuple):
    """One verb on one resource, of one name where that is said."""

    where: str
    group: str
    resource: str
    name: str
    verb: str


def documents() -> Iterator[dict[str, Any]]:
    for file in ("reconciler.yaml", "project.yaml"):
        yield from filter(None, yaml.safe_load_all((DEPLOY / "rbac" / file).read_text("utf-8")))


def given() -> set[Right]:
    rules = {item["metadata"]["name"]: item["rules"] for item in documents() if item.get("rules")}
    return {
        Right(where, group, resource, name, verb)
        for where, roles in ROLES.items()
        for role in roles
        for rule in rules[role]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def rows() -> list[list[str]]:
    text = (DEPLOY / "README.md").read_text("utf-8")
    section = text.split("## The reconciler's rights\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def told(row: list[str]) -> set[Right]:
    where, groups, resources, verbs = row
    kinds, _, named = resources.partition(" named ")
    reasons = re.findall(r"((?:`[a-z]+`(?:, )?)+): ", verbs)
    return {
        Right(where, group, resource, name, verb)
        for group in (quoted(groups) or [""])
        for resource in quoted(kinds)
        for name in (quoted(named) or [""])
        for reason in reasons
        for verb in quoted(reason)
    }


def test_every_right_is_told_with_its_reason_and_none_is_made_up() -> None:
    all_of_it = [right for row in rows() for right in told(row)]

    assert set(all_of_it) == given()
    assert len(all_of_it) == len(set(all_of_it))


@pytest.mark.parametrize("role", [role for roles in ROLES.values() for role in roles])
def test_these_are_the_accounts_own_roles(role: str) -> None:
    assert role in {
        item["metadata"]["name"] for item in documents() if item["kind"] == "ClusterRole"
    }


def test_no_other_role_has_rules_and_the_rest_comes_by_label() -> None:
    roles = [item for item in documents() if item["kind"] == "ClusterRole"]
    ruled = {item["metadata"]["name"] for item in roles if item.get("rules")}

    assert ruled == {role for roles in ROLES.values() for role in roles}
    assert all("aggregationRule" in item for item in roles if not item.get("rules"))


def test_nothing_that_reads_secrets_is_bound_everywhere() -> None:
    bound = {
        item["roleRef"]["name"] for item in documents() if item["kind"] == "ClusterRoleBinding"
    }

    assert "provisioning-broker-project" not in bound
    assert "provisioning-broker-project-own" not in bound
    assert not [
        right for right in given() if right.resource == "secrets" and right.where != "Project"
    ]
