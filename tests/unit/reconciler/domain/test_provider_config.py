"""The ProviderConfig of a credential, and that each published blueprint gets its provider's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from function.contract import names
from function.contract.catalog.published import (
    BlueprintVersionSpec,
    CloudCredentialSpec,
    CloudSpec,
    ProviderConfigTarget,
)
from reconciler.domain.protection import provider_config
from tests.unit.reconciler import samples

ROOT = Path(__file__).parents[4]
PUBLISHED = ROOT / "example" / "published"
SLUGS = sorted(path.parent.name for path in PUBLISHED.glob("*/blueprint.yaml"))
SECRET = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")
AWS = ProviderConfigTarget.model_validate({"apiVersion": "aws.m.upbound.io/v1beta1"})

Object = dict[str, Any]


def _manifest(target: ProviderConfigTarget | None, **cloud: Any) -> Object:
    return provider_config.manifest(
        name="acme",
        namespace="here",
        credential_name="acme",
        credential=samples.CREDENTIAL,
        cloud=CloudSpec.model_validate({"provider": "aws", **cloud}),
        target=target,
    )


@pytest.mark.parametrize("target", [None, ProviderConfigTarget(), ProviderConfigTarget(name="aws")])
def test_without_an_api_version_it_is_the_seeds_generic_one(
    target: ProviderConfigTarget | None,
) -> None:
    made = _manifest(target, endpoint={"region": "eu"})

    assert (made["apiVersion"], made["kind"]) == ("aws.crossplane.io/v1", "ProviderConfig")
    assert made["spec"] == {
        "endpoint": {"region": "eu"},
        "credentials": {"secretRef": {"name": SECRET}},
    }


def test_a_real_providers_takes_one_key_of_the_secret() -> None:
    made = _manifest(AWS)

    assert made["apiVersion"] == "aws.m.upbound.io/v1beta1"
    assert made["metadata"]["labels"] == {names.LABEL_HOLD: "true"}
    assert made["spec"] == {
        "credentials": {
            "source": "Secret",
            "secretRef": {"name": SECRET, "namespace": "here", "key": "credentials"},
        }
    }


def test_the_key_may_be_another() -> None:
    made = _manifest(AWS.model_copy(update={"secret_key": "kubeconfig"}))

    assert made["spec"]["credentials"]["secretRef"]["key"] == "kubeconfig"


def test_the_clouds_endpoint_sets_its_fields_but_never_the_credentials() -> None:
    endpoint = {"skip_region_validation": True, "credentials": {"source": "InjectedIdentity"}}

    made = _manifest(AWS, endpoint=endpoint)

    assert made["spec"]["skip_region_validation"] is True
    assert made["spec"]["credentials"]["source"] == "Secret"


@pytest.mark.parametrize(
    "target", [{"apiVersion": "Aws/v1"}, {"secretKey": "a/b"}, {"secretKey": ""}]
)
def test_a_target_that_names_nothing_is_refused(target: Object) -> None:
    with pytest.raises(ValidationError):
        ProviderConfigTarget.model_validate(target)


def _all(path: Path) -> list[Object]:
    return [item for item in yaml.safe_load_all(path.read_text()) if item]


def published(slug: str) -> Object:
    """Return the ProviderConfig that the example's declaration leads to."""
    (blueprint,) = _all(PUBLISHED / slug / "blueprint.yaml")
    (resource,) = _all(PUBLISHED / slug / "resource.yaml")
    listed = {
        (item["kind"], item["metadata"]["name"]): item["spec"]
        for item in _all(PUBLISHED / "clouds.yaml")
    }
    own = resource["spec"]["cloudCredentialRef"]["name"]
    credential = CloudCredentialSpec.model_validate(listed["CloudCredential", own])
    cloud = CloudSpec.model_validate(listed["Cloud", credential.cloud_ref.name])
    version = BlueprintVersionSpec.model_validate(blueprint["spec"])
    return provider_config.manifest(
        name=provider_config.name(version, cloud, own),
        namespace=samples.NAMESPACE,
        credential_name=own,
        credential=credential,
        cloud=cloud,
        target=version.provider_config,
    )


def _bases(slug: str) -> Iterator[Object]:
    (composition,) = _all(ROOT / "compositions" / "blueprints" / f"{slug}.yaml")
    for step in composition["spec"]["pipeline"]:
        for resource in step.get("input", {}).get("resources", []):
            if "providerConfigRef" in resource.get("base", {}).get("spec", {}):
                yield resource


@pytest.mark.parametrize("slug", SLUGS)
def test_it_is_of_the_provider_that_the_managed_resources_are_of(slug: str) -> None:
    config = published(slug)
    provider = names.group_of(config["apiVersion"])

    resources = list(_bases(slug))

    assert resources
    for resource in resources:
        group = names.group_of(resource["base"]["apiVersion"])
        assert group == provider or group.endswith(f".{provider}")
        assert resource["base"]["spec"]["providerConfigRef"]["kind"] == config["kind"]


@pytest.mark.parametrize("slug", SLUGS)
def test_its_name_is_where_the_composition_reads_it(slug: str) -> None:
    (blueprint,) = _all(PUBLISHED / slug / "blueprint.yaml")
    (resource,) = _all(PUBLISHED / slug / "resource.yaml")
    path = blueprint["spec"]["providerConfig"]["fieldPath"]

    assert published(slug)["metadata"]["name"] == resource["spec"]["cloudCredentialRef"]["name"]
    assert path == "spec.providerConfigRef.name"
