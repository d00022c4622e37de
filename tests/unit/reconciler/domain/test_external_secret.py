"""The ExternalSecret of a credential, and that its kind takes it."""

from __future__ import annotations

import pytest

from function.contract import names
from function.contract.catalog.published import SecretStoreRef, VaultPath
from reconciler.domain.protection import external_secret

VAULT = VaultPath(mount="kv", path="acme/demo")


@pytest.fixture
def manifest() -> dict[str, object]:
    store = SecretStoreRef(kind="SecretStore", name="openbao")
    return external_secret.manifest(namespace="here", vault=VAULT, store=store)


def test_it_has_the_name_of_the_secret_that_a_provider_config_refers_to(
    manifest: dict[str, object],
) -> None:
    name = names.cloud_credentials_secret_name(mount="kv", path="acme/demo")

    assert manifest["metadata"] == {
        "name": name,
        "namespace": "here",
        "labels": {
            "app.kubernetes.io/managed-by": "plexsphere-provisioning-broker",
            names.LABEL_HOLD: "true",
        },
    }


def test_it_reads_the_whole_secret_and_loses_nothing_that_the_store_loses(
    manifest: dict[str, object],
) -> None:
    spec = manifest["spec"]
    assert isinstance(spec, dict)

    assert spec["dataFrom"] == [{"extract": {"key": "kv/acme/demo"}}]
    assert spec["secretStoreRef"] == {"kind": "SecretStore", "name": "openbao"}
    assert spec["target"]["creationPolicy"] == "Owner"
    assert spec["target"]["deletionPolicy"] == "Retain"


def test_its_secret_is_born_without_the_hold_that_its_maker_may_not_put_on(
    manifest: dict[str, object],
) -> None:
    spec = manifest["spec"]
    assert isinstance(spec, dict)

    labels = spec["target"]["template"]["metadata"]["labels"]
    assert labels
    assert names.LABEL_HOLD not in labels
