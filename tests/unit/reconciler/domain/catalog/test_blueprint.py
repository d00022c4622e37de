"""What a good blueprint becomes, and what ours become."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from function.contract import record
from function.contract.catalog.terminal import USUAL
from function.contract.strategy import InjectionStrategy
from function.render.fields import inject
from reconciler.catalog.blueprint import Source, judge
from reconciler.catalog.injection import SITES
from tests.unit.reconciler.domain.catalog import given

ROOT = Path(__file__).parents[5]
PUBLISHED = sorted(path.stem for path in (ROOT / "xrds" / "blueprints").glob("*.yaml"))


def test_a_good_blueprint_becomes_a_manifest() -> None:
    judgement = given.judged()

    assert judgement.findings == []
    assert judgement.manifest == {
        "apiVersion": "provisioning.plexsphere.com/v1alpha1",
        "kind": "BlueprintVersion",
        "metadata": {"name": "small-vm-v1alpha1"},
        "spec": {
            "slug": "small-vm",
            "version": "v1alpha1",
            "injectionStrategy": "cloud-init-user-data",
            "meshRole": "node",
            "providerKinds": ["hetzner"],
            "xr": {
                "apiVersion": "blueprints.plexsphere.com/v1alpha1",
                "kind": "XSmallVM",
                "scope": "Namespaced",
            },
            "providerConfig": {"kind": "ProviderConfig", "name": "hetzner"},
            "parameters": [
                {"name": "size", "type": "string", "default": "s"},
                {"name": "disk", "type": "integer", "required": True},
            ],
        },
    }


def test_a_name_that_the_xr_gives_becomes_a_field_path() -> None:
    patch = given.patch("spec.providerConfigRef.name", "spec.providerConfigRef.name")

    judgement = given.judged(composed=given.composition([*given.patches_of_a_machine(), patch]))

    assert judgement.manifest is not None
    wanted = {"kind": "ProviderConfig", "fieldPath": "spec.providerConfigRef.name"}
    assert judgement.manifest["spec"]["providerConfig"] == wanted


@pytest.mark.parametrize(
    ("api_version", "wanted"),
    [
        ("ec2.aws.m.upbound.io/v1beta1", "aws.m.upbound.io/v1beta1"),
        ("kubernetes.m.crossplane.io/v1alpha1", "kubernetes.m.crossplane.io/v1alpha1"),
        ("compute.openstack.m.crossplane.io/v1alpha1", "openstack.m.crossplane.io/v1beta1"),
        ("notaws.m.upbound.io/v1beta1", None),
    ],
)
def test_the_provider_is_told_by_the_resources_group(api_version: str, wanted: str | None) -> None:
    reference = {"kind": "ProviderConfig", "name": "main"}
    base = {
        "apiVersion": api_version,
        "kind": "Machine",
        "spec": {"providerConfigRef": reference},
    }

    judgement = given.judged(composed=given.composition(base=base))

    assert judgement.manifest is not None
    own = {} if wanted is None else {"apiVersion": wanted}
    assert judgement.manifest["spec"]["providerConfig"] == {**own, **reference}


def test_resources_of_two_providers_have_no_one_config() -> None:
    composed = given.composition()
    (step,) = composed["spec"]["pipeline"]
    reference = {"kind": "ProviderConfig", "name": "hetzner"}
    for group in ("helm", "kubernetes"):
        body = {
            "apiVersion": f"{group}.m.crossplane.io/v1beta1",
            "kind": "Thing",
            "spec": {"providerConfigRef": dict(reference)},
        }
        step["input"]["resources"].append({"name": group, "base": body, "patches": []})

    judgement = given.judged(composed=composed)

    assert judgement.manifest is None
    assert any(
        "must be of one provider for all resources" in each for each in given.told(judgement)
    )


def test_without_a_reference_the_provider_names_it() -> None:
    base = {"apiVersion": given.NAMESPACED, "kind": "Machine", "spec": {}}

    judgement = given.judged(composed=given.composition(base=base))

    assert judgement.manifest is not None
    assert "providerConfig" not in judgement.manifest["spec"]


def test_standalone_needs_no_bootstrap() -> None:
    composed = given.composition(given.patches_of_a_machine()[1:])

    judgement = given.judged(told=given.metadata(meshRole="standalone"), composed=composed)

    assert judgement.manifest is not None


@pytest.mark.parametrize(
    ("strategy", "leaf"),
    [
        ("helm-values", "helmValues.apiUrl"),
        ("helm-values", "helmValues.bootstrapToken"),
        ("helm-values", "helmValues.plexdImage"),
        ("provider-secret", "providerSecret.bootstrapToken"),
    ],
)
def test_every_leaf_of_a_strategy_must_be_read(strategy: str, leaf: str) -> None:
    judgement = given.judged(told=given.metadata(injectionStrategy=strategy))

    path = f"spec.parameters.{leaf}"
    told = given.told(judgement)
    assert any(f"does not read {path}" in each for each in told)
    assert any(f"does not declare {path} as a string" in each for each in told)


@pytest.mark.parametrize("name", ["metadata.json", "xrd.yaml", "composition.yaml"])
def test_a_missing_file_is_named(name: str) -> None:
    whole = given.source()
    files = {key: content for key, content in whole.files.items() if key != name}

    judgement = judge(Source(slug=whole.slug, folder=whole.folder, files=files))

    assert given.told(judgement) == [f"{name}: is missing"]


def test_the_sites_are_those_that_the_renderer_writes() -> None:
    sites = {site for strategy in InjectionStrategy for site in SITES[strategy]}

    assert sites == set(inject.STICKY)


@pytest.mark.parametrize("slug", PUBLISHED)
def test_a_published_blueprint_is_what_its_import_gives(slug: str) -> None:
    manifest = yaml.safe_load((ROOT / "example/published" / slug / "blueprint.yaml").read_text())
    spec = manifest["spec"]
    # A catalogue says nothing of failing, which means the same.
    assert spec.pop("terminalConditions") == [record.wire(each) for each in USUAL]
    told = {
        "slug": slug,
        "displayName": slug,
        "description": "",
        "parameterSchema": {
            "parameters": spec["parameters"],
            "constants": spec.get("constants", []),
        },
        **{key: spec[key] for key in ("version", "providerKinds", "injectionStrategy", "meshRole")},
    }

    judgement = judge(
        Source(
            slug=slug,
            folder=slug,
            files={
                "metadata.json": json.dumps(told).encode(),
                "xrd.yaml": (ROOT / "xrds/blueprints" / f"{slug}.yaml").read_bytes(),
                "composition.yaml": (
                    ROOT / "compositions/blueprints" / f"{slug}.yaml"
                ).read_bytes(),
            },
        )
    )

    assert judgement.findings == []
    assert judgement.manifest == manifest


@pytest.mark.parametrize("slug", PUBLISHED)
def test_a_published_definition_is_held(slug: str) -> None:
    definition = yaml.safe_load((ROOT / "xrds/blueprints" / f"{slug}.yaml").read_text())

    assert definition["metadata"]["labels"] == {"provisioning.plexsphere.com/hold": "true"}


LIMITS = ("enum", "pattern", "minLength", "maxLength", "minimum", "maximum")


@pytest.mark.parametrize("slug", PUBLISHED)
def test_a_published_parameter_has_the_limits_that_its_definition_has(slug: str) -> None:
    spec = yaml.safe_load((ROOT / "example/published" / slug / "blueprint.yaml").read_text())[
        "spec"
    ]
    definition = yaml.safe_load((ROOT / "xrds/blueprints" / f"{slug}.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    defined = schema["parameters"]["properties"]

    for each in spec["parameters"]:
        said = {key: each[key] for key in LIMITS if key in each}
        assert said or each["type"] == "boolean", each["name"]
        shown = defined[each["name"]]
        assert said == {key: shown[key] for key in LIMITS if key in shown}, each["name"]


@pytest.mark.parametrize("slug", PUBLISHED)
def test_what_reaches_a_target_cluster_is_no_parameter(slug: str) -> None:
    spec = yaml.safe_load((ROOT / "example/published" / slug / "blueprint.yaml").read_text())[
        "spec"
    ]

    settable = {each["name"] for each in spec["parameters"]}

    assert settable.isdisjoint({"namespace", "chartRepository", "chartName"})


def test_a_constant_has_a_name_of_its_own() -> None:
    size = {"name": "size", "type": "string", "enum": ["small", "large"], "mutable": True}
    told = given.metadata(
        parameterSchema={
            "parameters": [size],
            "constants": [{"name": "region", "value": "here"}, {"name": "size", "value": "x"}],
        }
    )

    findings = given.told(given.judged(told=told))

    assert any("constants[1].name: is duplicated" in each for each in findings)


def test_two_constants_have_two_names() -> None:
    told = given.metadata(
        parameterSchema={
            "parameters": [],
            "constants": [{"name": "region", "value": "here"}, {"name": "region", "value": "x"}],
        }
    )

    findings = given.told(given.judged(told=told))

    assert any("constants[1].name: is duplicated" in each for each in findings)
