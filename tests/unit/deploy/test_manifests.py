"""What holds the plain manifests of `deploy/` together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from dev import policy_digests
from function.contract import names
from function.contract.strategy import CloudProvider
from reconciler.adapters.kubernetes.access.policy_digests import DIGESTS
from reconciler.adapters.kubernetes.namespaces import project_rights

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
RECONCILER = "system:serviceaccount:plexsphere-system:provisioning-broker"
POLICIES = ("plexsphere-hold", "plexsphere-hold-children", "plexsphere-hold-records")


def documents(*parts: str) -> list[dict[str, Any]]:
    files = sorted((DEPLOY / part) for part in parts)
    return [item for file in files for item in yaml.safe_load_all(file.read_text()) if item]


def everything() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted(DEPLOY.rglob("*.yaml")):
        if file.name != "kustomization.yaml":
            for item in filter(None, yaml.safe_load_all(file.read_text())):
                yield str(file.relative_to(DEPLOY)), item


def one(kind: str, name: str, *parts: str) -> dict[str, Any]:
    (found,) = [
        item
        for item in documents(*parts)
        if item["kind"] == kind and item["metadata"]["name"] == name
    ]
    return found


def test_the_reconciler_knows_the_policies_of_its_own_version() -> None:
    """`make generate` writes the digests; every policy that holds nodes is among them."""
    assert policy_digests.FILE.read_text(encoding="utf-8") == policy_digests.render()
    assert set(POLICIES) == set(DIGESTS)


def test_kustomization_lists_every_manifest() -> None:
    (kustomization,) = documents("kustomization.yaml")

    files = {file for file, _ in everything()}
    assert set(kustomization["resources"]) == files
    assert len(kustomization["resources"]) == len(files)


def test_readme_names_every_file() -> None:
    readme = (DEPLOY / "README.md").read_text()

    for path in (path for path in DEPLOY.rglob("*.yaml") if path.parent.name != "crds"):
        assert f"`{path.relative_to(DEPLOY)}`" in readme


def test_every_object_says_what_it_is_part_of() -> None:
    for file, item in everything():
        labels = item["metadata"].get("labels", {})
        assert labels.get("app.kubernetes.io/part-of") == "plexsphere-provisioning-broker", file


@pytest.mark.parametrize("policy", [*POLICIES, "plexsphere-account"])
def test_policy_fails_closed_denies_and_takes_no_parameters(policy: str) -> None:
    file = f"policies/{policy.removeprefix('plexsphere-')}.yaml"
    spec = one("ValidatingAdmissionPolicy", policy, file)["spec"]
    binding = one("ValidatingAdmissionPolicyBinding", policy, "policies/bindings.yaml")["spec"]

    assert spec["failurePolicy"] == "Fail"
    assert "paramKind" not in spec
    assert binding == {"policyName": policy, "validationActions": ["Deny"]}


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_exempts_reconciler_and_break_glass_and_says_what_to_do(policy: str) -> None:
    file = f"policies/{policy.removeprefix('plexsphere-')}.yaml"
    spec = one("ValidatingAdmissionPolicy", policy, file)["spec"]

    conditions = " ".join(each["expression"] for each in spec["matchConditions"])
    assert f'"{RECONCILER}"' in conditions
    assert '"plexsphere:break-glass"' in conditions
    for validation in spec["validations"]:
        assert validation["reason"] == "Forbidden"
        assert validation["message"]
        assert "cannot " in validation["messageExpression"]


def test_the_accounts_policy_limits_that_account_and_says_what_it_may() -> None:
    spec = one("ValidatingAdmissionPolicy", "plexsphere-account", "policies/account.yaml")["spec"]

    (condition,) = spec["matchConditions"]
    assert condition["expression"] == f'request.userInfo.username == "{RECONCILER}"'
    for validation in spec["validations"]:
        assert validation["reason"] == "Forbidden"
        assert validation["message"]
        assert '"cannot ' in validation["messageExpression"]


def test_the_accounts_policy_speaks_of_the_names_that_the_code_gives() -> None:
    text = (DEPLOY / "policies" / "account.yaml").read_text()

    secret = names.cloud_credentials_secret_name(mount="kv", path="acme/hetzner")
    (credentials,) = set(re.findall(r'"(\^cloud-credentials-[^"]+)"', text))
    (tokens,) = set(re.findall(r'"(\^[^"]+-g\[[^"]+)"', text))
    (project,) = set(re.findall(r'"(\^plexsphere-project-[^"]+)"', text))
    assert re.search(credentials, secret)
    assert re.search(tokens, names.token_secret_name("web-1-0123456789", 12))
    assert re.search(project, names.project_namespace(uuid4()))
    assert names.TOKEN_SECRET_TYPE in text
    assert names.FINALIZER in text
    assert f'"{project_rights.BINDING}"' in text
    assert f'"{project_rights.ROLE}"' in text


def test_policies_speak_of_the_names_in_the_contract() -> None:
    texts = " ".join(path.read_text() for path in (DEPLOY / "policies").glob("hold*.yaml"))

    ours = set(re.findall(rf"{re.escape(names.GROUP)}/[a-z-]+", texts))
    assert ours == {
        names.LABEL_HOLD,
        names.LABEL_RECORD,
        names.ANNOTATION_RELEASED,
        names.ANNOTATION_RECORDS,
        names.ANNOTATION_FORCE_RELEASE,
        names.FINALIZER,
    }
    assert names.CROSSPLANE_COMPOSITE in texts


def test_bindings_are_last_to_come_and_first_to_go() -> None:
    (kustomization,) = documents("kustomization.yaml")
    readme = (DEPLOY / "README.md").read_text()
    removing = readme[readme.index("## Removing") :]

    order = kustomization["resources"]
    assert order.index("policies/bindings.yaml") > order.index("policies/hold-records.yaml")
    assert removing.index("policies/bindings.yaml") < removing.index("deploy/crds/")


def test_reconciler_reaches_the_provider_configs_of_every_provider() -> None:
    rules = one("ClusterRole", "provisioning-broker-project-own", "rbac/project.yaml")["rules"]

    (groups,) = [rule["apiGroups"] for rule in rules if "providerconfigs" in rule["resources"]]
    published = [
        yaml.safe_load(path.read_text())["spec"]["providerConfig"]["apiVersion"]
        for path in (DEPLOY.parent / "example" / "published").glob("*/blueprint.yaml")
    ]
    assert set(groups) == {
        *(f"{provider}.crossplane.io" for provider in CloudProvider),
        *(names.group_of(version) for version in published),
    }


def test_reconciler_sees_when_what_published_blueprints_make_is_gone() -> None:
    rules = one("ClusterRole", "provisioning-broker-reconciler", "rbac/reconciler.yaml")["rules"]

    seen = {
        group for rule in rules if rule["resources"] == ["*"] for group in rule["apiGroups"]
    } - {names.BLUEPRINTS_GROUP}
    made = {
        names.group_of(item["base"]["apiVersion"])
        for path in (DEPLOY.parent / "compositions" / "blueprints").glob("*.yaml")
        for step in yaml.safe_load(path.read_text())["spec"]["pipeline"]
        for item in (step.get("input") or {}).get("resources") or []
    }
    # Secrets it may get for another reason.
    assert seen == made - {""}


def test_no_role_holds_wildcard_verbs_or_groups() -> None:
    for file, item in everything():
        for rule in item.get("rules", []) if item["kind"] in {"ClusterRole", "Role"} else []:
            assert "*" not in rule["verbs"], file
            assert "*" not in rule.get("apiGroups", []), file


def test_paths_of_the_operators_api_are_all_that_is_given_by_url() -> None:
    given = {
        item["metadata"]["name"]: (rule["nonResourceURLs"], rule["verbs"])
        for _, item in everything()
        for rule in item.get("rules", [])
        if item["kind"] == "ClusterRole" and "nonResourceURLs" in rule
    }

    assert given == {
        "provisioning-broker-operator-read": (["/v1/projects/*"], ["get"]),
        "provisioning-broker-operator-revoke": (["/v1/projects/*"], ["get", "delete"]),
    }


def test_no_role_for_people_writes_records() -> None:
    for item in documents("rbac/people.yaml"):
        if item["kind"] != "ClusterRole" or item["metadata"]["name"].endswith("break-glass"):
            continue
        for rule in item["rules"]:
            if set(rule["verbs"]) - {"get", "list", "watch"}:
                assert not {"provisioningrecords", "*"} & set(rule.get("resources", []))


def test_reconciler_has_four_minutes_to_start_before_it_is_judged() -> None:
    pod = one("Deployment", "provisioning-broker", "reconciler.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    startup = container["startupProbe"]
    assert startup["httpGet"] == container["livenessProbe"]["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 240


def test_two_replicas_answer_nodes_during_rollouts_and_drains() -> None:
    spec = one("Deployment", "provisioning-broker", "reconciler.yaml")["spec"]
    budget = one("PodDisruptionBudget", "provisioning-broker", "pdb.yaml")["spec"]
    services = [item for item in documents("reconciler.yaml") if item["kind"] == "Service"]

    assert spec["replicas"] == 2
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }
    assert budget["minAvailable"] == 1
    assert budget["selector"] == spec["selector"]
    labels = spec["template"]["metadata"]["labels"]
    for service in services:
        assert service["spec"]["selector"].items() <= labels.items()


def test_replicas_spread_over_hosts_and_zones_as_far_as_there_are_some() -> None:
    pod = one("Deployment", "provisioning-broker", "reconciler.yaml")["spec"]["template"]

    spread = pod["spec"]["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }
    for each in spread:
        assert each["whenUnsatisfiable"] == "ScheduleAnyway"
        assert each["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_reconciler_runs_unprivileged_under_a_token_of_its_own() -> None:
    pod = one("Deployment", "provisioning-broker", "reconciler.yaml")["spec"]["template"]["spec"]
    account = one("ServiceAccount", "provisioning-broker", "rbac/reconciler.yaml")

    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsUser"] == 2000
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["image"].endswith(":latest")
        assert [each["valueFrom"] for each in container["env"] if each["name"] == "PLEXSPHERE_DSN"]
